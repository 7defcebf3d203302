# Numeric loops: every machine gets its widest vectors at run time where the compiler can make several versions of a
# function, and the same bits everywhere, since products and sums are not contracted (but in attention's products and
# those of one row: CMakeLists.txt).
include(CheckCXXCompilerFlag)
include(CheckCXXSourceCompiles)

set(_concord_clones [==[[[gnu::target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")]]]==])
# Where sources are compiled at once, calls stand before definitions; Clang permits no versions then.
check_cxx_source_compiles(
  "void twice(float* a); int main() { float a[1] = {1}; twice(a); return 0; }
  ${_concord_clones} void twice(float* a) { a[0] *= 2; }"
  CONCORD_HAS_CLONES)

# 512 bits where the processor has them: the loops are short and wait on no other unit.
check_cxx_compiler_flag(-mprefer-vector-width=512 CONCORD_HAS_WIDE_VECTORS)

# Gives `target` the definition CONCORD_SIMD: the attribute of functions to be compiled once for each vector width.
function(concord_simd target)
  # The versions are chosen before a sanitizer's run-time library is ready.
  if(CONCORD_HAS_CLONES AND NOT CONCORD_SANITIZE)
    target_compile_definitions(${target} PRIVATE "CONCORD_SIMD=${_concord_clones}")
  else()
    target_compile_definitions(${target} PRIVATE "CONCORD_SIMD=")
  endif()
  target_compile_options(${target} PRIVATE
    $<$<CXX_COMPILER_ID:GNU,Clang,AppleClang>:-O3 -ffp-contract=off -fno-math-errno -fno-trapping-math>
    $<$<BOOL:${CONCORD_HAS_WIDE_VECTORS}>:-mprefer-vector-width=512>)
endfunction()
