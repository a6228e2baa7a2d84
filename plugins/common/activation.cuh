// The activations of trtplug::CBR, in FP32; names and parameters are those of the op.
#pragma once

namespace trtplug {

enum class Activation {
  kNone,
  kRelu,
  kClip,
  kLeakyRelu,
  kSilu,
  kHardSwish,
  kHardSigmoid,
  kSigmoid,
  kTanh,
  kGelu,
  kMish,
};

enum class Residual { kNone, kBeforeActivation, kAfterActivation };

struct ActivationValues {
  float alpha;
  float beta;
  float least;
  float most;
};

// Comparisons and not fminf and fmaxf: those would hide a NaN.
__device__ __forceinline__ float clip(float x, float least, float most) {
  x = x < least ? least : x;
  return x > most ? most : x;
}

// e^x by the hardware's 2^x. Results below 2^-126 are 0: each is added to at least 1 here, and what
// keeps them (`__expf`) takes three times the instructions.
__device__ __forceinline__ float exponential(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * 1.4426950409f));
  return power;
}

// 1 / x within 1 unit in the last place, for x from 2^-126 on; of infinity it is 0.
__device__ __forceinline__ float reciprocal(float x) {
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
  return inverse;
}

__device__ __forceinline__ float sigmoid(float x) {
  return reciprocal(1.0f + exponential(-x));
}

// 0.5 * (1 + erf(x / sqrt(2))), or its tanh approximation where alpha is 1.
__device__ __forceinline__ float gelu_gate(float x, float alpha) {
  if (alpha == 1.0f) {
    return 0.5f * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
  }
  return 0.5f * (1.0f + erff(x * 0.7071067812f));
}

// tanh(log(1 + e^x)), written so that nothing cancels; above 20 it is 1 in FP32.
__device__ __forceinline__ float mish_gate(float x) {
  const float e = exponential(x > 20.0f ? 20.0f : x);
  const float product = e * (e + 2.0f);
  return product * reciprocal(product + 2.0f);
}

template <Activation kKind>
__device__ __forceinline__ float activate(float x, const ActivationValues& values) {
  switch (kKind) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x < 0.0f ? 0.0f : x;
    case Activation::kClip:
      return clip(x, values.least, values.most);
    case Activation::kLeakyRelu:
      return x < 0.0f ? values.alpha * x : x;
    case Activation::kSilu:
      return x * sigmoid(x);
    case Activation::kHardSwish:
      return x * clip(values.alpha * x + values.beta, 0.0f, 1.0f);
    case Activation::kHardSigmoid:
      return clip(values.alpha * x + values.beta, 0.0f, 1.0f);
    case Activation::kSigmoid:
      return sigmoid(x);
    case Activation::kTanh:
      return tanhf(x);
    case Activation::kGelu:
      return x * gelu_gate(x, values.alpha);
    case Activation::kMish:
      return x * mish_gate(x);
  }
  __builtin_unreachable();
}

// What a convolution's sum becomes: bias is in it already.
template <Activation kKind, Residual kResidual>
__device__ __forceinline__ float finish(float sum, float residual, const ActivationValues& values) {
  if (kResidual == Residual::kBeforeActivation) {
    sum += residual;
  }
  sum = activate<kKind>(sum, values);
  if (kResidual == Residual::kAfterActivation) {
    sum += residual;
  }
  return sum;
}

}  // namespace trtplug
