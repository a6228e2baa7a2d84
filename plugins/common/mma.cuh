// Tensor-core products of 16x16 by 16x8 with FP32 sums, and the loads of their fragments.
#pragma once

#include "common/dtype.cuh"

namespace trtplug {

// Four 8x8 matrices of 16-bit elements; lane 8 * i + j names row j of matrix i.
__device__ __forceinline__ void load_matrices(unsigned (&to)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ void load_matrices(unsigned (&to)[2], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(to[0]), "=r"(to[1])
               : "r"(address)
               : "memory");
}

// sum[16 x 8] += a[16 x 16] * b[16 x 8]; fragments as in the PTX manual, section on mma.m16n8k16.
template <class Element>
__device__ __forceinline__ void multiply_add(float (&sum)[4], const unsigned (&a)[4],
                                             const unsigned* b);

template <>
__device__ __forceinline__ void multiply_add<Half>(float (&sum)[4], const unsigned (&a)[4],
                                                   const unsigned* b) {
#if TRTPLUG_SM >= 80
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  // sm_75 has only the half of it in depth: the same fragments, two steps.
#pragma unroll
  for (int step = 0; step < 2; ++step) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[2 * step]), "r"(a[2 * step + 1]), "r"(b[step]));
  }
#endif
}

#if TRTPLUG_SM >= 80
template <>
__device__ __forceinline__ void multiply_add<Bfloat16>(float (&sum)[4], const unsigned (&a)[4],
                                                       const unsigned* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

}  // namespace trtplug
