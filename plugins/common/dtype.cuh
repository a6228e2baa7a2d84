// Element types and their conversions to and from FP32, without any header of CUDA's: NVRTC ships
// none.
#pragma once

namespace trtplug {

#ifndef __CUDA_ARCH__
#define TRTPLUG_SM 0
#else
#define TRTPLUG_SM (__CUDA_ARCH__ / 10)
#endif

struct Half {
  unsigned short bits;
};

struct Bfloat16 {
  unsigned short bits;
};

__device__ __forceinline__ float to_float(float value) {
  return value;
}

__device__ __forceinline__ float to_float(Half value) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
  return wide;
}

__device__ __forceinline__ float to_float(Bfloat16 value) {
  return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
}

template <class Element>
__device__ __forceinline__ Element from_float(float value);

template <>
__device__ __forceinline__ float from_float<float>(float value) {
  return value;
}

template <>
__device__ __forceinline__ Half from_float<Half>(float value) {
  Half narrow;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(value));
  return narrow;
}

template <>
__device__ __forceinline__ Bfloat16 from_float<Bfloat16>(float value) {
  Bfloat16 narrow;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(value));
  return narrow;
}

// Two elements in one register, the first in the low half.
template <class Element>
__device__ __forceinline__ unsigned pack(float first, float second) {
  const unsigned low = from_float<Element>(first).bits;
  const unsigned high = from_float<Element>(second).bits;
  return low | (high << 16);
}

#if TRTPLUG_SM >= 80
template <>
__device__ __forceinline__ unsigned pack<Half>(float first, float second) {
  unsigned both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  return both;
}

template <>
__device__ __forceinline__ unsigned pack<Bfloat16>(float first, float second) {
  unsigned both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  return both;
}
#endif

// Two of them in one register, as `pack`; what is of that type already is not rounded again.
template <class Element>
__device__ __forceinline__ unsigned join(Element first, Element second) {
  return first.bits | static_cast<unsigned>(second.bits) << 16;
}

template <class Element>
__device__ __forceinline__ unsigned join(float first, float second) {
  return pack<Element>(first, second);
}

// Both elements of a packed pair.
template <class Element>
__device__ __forceinline__ float2 unpack(unsigned both);

template <>
__device__ __forceinline__ float2 unpack<Half>(unsigned both) {
  float2 wide;
  asm("{\n  .reg .b16 low, high;\n  mov.b32 {low, high}, %2;\n"
      "  cvt.f32.f16 %0, low;\n  cvt.f32.f16 %1, high;\n}"
      : "=f"(wide.x), "=f"(wide.y)
      : "r"(both));
  return wide;
}

template <>
__device__ __forceinline__ float2 unpack<Bfloat16>(unsigned both) {
  return make_float2(__uint_as_float(both << 16), __uint_as_float(both & 0xffff0000u));
}

}  // namespace trtplug
