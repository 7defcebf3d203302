// For kernels that read blocks of channels: no prologue where the text in front gives none (block_prologue).
#ifndef CONCORD_PROLOGUE_BLOCK_H
#define CONCORD_PROLOGUE_BLOCK_H

#ifndef PROLOGUE_PARAMETERS
#define PROLOGUE_PARAMETERS
#define PROLOGUE_BLOCK(values, at, image, channel)
#endif

#endif
