// For kernels that finish blocks of channels: no epilogue where the text in front gives none (block_epilogue).
#ifndef CONCORD_EPILOGUE_BLOCK_H
#define CONCORD_EPILOGUE_BLOCK_H

#ifndef EPILOGUE_PARAMETERS
#define EPILOGUE_PARAMETERS
#endif
#ifndef EPILOGUE_BLOCK
#define EPILOGUE_BLOCK(values, at, image, channel)
#endif

#endif
