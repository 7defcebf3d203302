// For kernels of blocks of channels: no epilogue and no prologue where the text in front gives none (block_epilogue,
// block_prologue).
#ifndef CONCORD_EPILOGUE_BLOCK_H
#define CONCORD_EPILOGUE_BLOCK_H

#ifndef EPILOGUE_PARAMETERS
#define EPILOGUE_PARAMETERS
#endif
#ifndef EPILOGUE_BLOCK
#define EPILOGUE_BLOCK(values, at, image, channel)
#endif
#ifndef PROLOGUE_PARAMETERS
#define PROLOGUE_PARAMETERS
#define PROLOGUE_BLOCK(values, at, image, channel)
#endif

#endif
