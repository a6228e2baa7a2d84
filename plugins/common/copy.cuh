// Shared memory: addresses, the swizzle, 16-byte moves, and asynchronous copies from global memory.
#pragma once

#include "common/dtype.cuh"

namespace trtplug {

__host__ __device__ constexpr int divide_up(int value, int by) {
  return (value + by - 1) / by;
}

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// Where the 16-byte chunk `chunk` of row `row` lies in a tile of `kChunks` chunks a row. Any 8 rows
// in turn, at one chunk, lie in 8 different sixteenths of 128 bytes: ldmatrix meets no bank twice.
template <int kChunks>
__device__ __forceinline__ unsigned swizzled(int row, int chunk) {
  static_assert(kChunks == 4 || kChunks % 8 == 0, "a row is 64 bytes, or a multiple of 128");
  const int mask = kChunks == 4 ? (row >> 1) & 3 : row & 7;
  return static_cast<unsigned>(row * kChunks + (chunk ^ mask)) * 16u;
}

__device__ __forceinline__ void store_shared(unsigned address, uint4 value) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(value.x),
               "r"(value.y), "r"(value.z), "r"(value.w)
               : "memory");
}

__device__ __forceinline__ void store_shared(unsigned address, unsigned value) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

__device__ __forceinline__ uint4 load_shared_16(unsigned address) {
  uint4 value;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "r"(address)
               : "memory");
  return value;
}

__device__ __forceinline__ unsigned load_shared_4(unsigned address) {
  unsigned value;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
  return value;
}

__device__ __forceinline__ uint4 load_global_16(const void* pointer) {
  return __ldg(static_cast<const uint4*>(pointer));
}

// One load under a predicate: an `if` around it becomes a branch, and hundreds of those cost a
// compiler more than the loads.
__device__ __forceinline__ float load_global_or_zero(const float* pointer, bool inside) {
  float value;
  asm("{\n  .reg .pred inside;\n  setp.ne.u32 inside, %2, 0;\n  mov.f32 %0, 0f00000000;\n"
      "  @inside ld.global.nc.f32 %0, [%1];\n}"
      : "=f"(value)
      : "l"(__cvta_generic_to_global(pointer)), "r"(static_cast<unsigned>(inside)));
  return value;
}

template <class Element>
__device__ __forceinline__ Element load_global_or_zero(const Element* pointer, bool inside) {
  static_assert(sizeof(Element) == 2, "FP16 or BF16");
  Element value;
  asm("{\n  .reg .pred inside;\n  setp.ne.u32 inside, %2, 0;\n  mov.b16 %0, 0;\n"
      "  @inside ld.global.nc.b16 %0, [%1];\n}"
      : "=h"(value.bits)
      : "l"(__cvta_generic_to_global(pointer)), "r"(static_cast<unsigned>(inside)));
  return value;
}

// Written out: an assignment through a uint4 pointer becomes four stores of 4 bytes.
__device__ __forceinline__ void store_global_16(void* pointer, uint4 value) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(pointer)),
               "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w)
               : "memory");
}

// The first `bytes` bytes of a 16-byte chunk, the rest zero: padding lanes are not trusted.
__device__ __forceinline__ uint4 keep_bytes(uint4 value, int bytes) {
  unsigned words[4] = {value.x, value.y, value.z, value.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int left = bytes - 4 * i;
    words[i] = left >= 4 ? words[i] : left == 2 ? words[i] & 0xffffu : 0u;
  }
  return make_uint4(words[0], words[1], words[2], words[3]);
}

#if TRTPLUG_SM >= 80
// Copies `bytes` of 16 (0 to 16) past the registers and the L1 cache, and fills up with zeros.
__device__ __forceinline__ void copy_async(unsigned to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void copy_async(unsigned to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most the `kPending` newest groups of this thread are still under way.
template <int kPending>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
#endif

}  // namespace trtplug
