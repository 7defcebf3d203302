// The types of warpgroup products (shared/nvidia/wgmma.h) by PRECISION.
#ifndef CONCORD_GEMM_HOPPER_WGMMA_H
#define CONCORD_GEMM_HOPPER_WGMMA_H
#include "shared/nvidia/wgmma.h"

// Types and depth, and what follows the text of an instruction whose left operand lies in registers.
#define WGMMA_TYPES_FP16 "k16.f32.f16.f16"
#if PRECISION == TF32
#define WGMMA_TYPES "k8.f32.tf32.tf32"
#define WGMMA_FROM_REGISTERS ""
#elif PRECISION == FP16
#define WGMMA_TYPES WGMMA_TYPES_FP16
#define WGMMA_FROM_REGISTERS ", 0"
#else
#define WGMMA_TYPES "k16.f32.bf16.bf16"
#define WGMMA_FROM_REGISTERS ", 0"
#endif

#endif
