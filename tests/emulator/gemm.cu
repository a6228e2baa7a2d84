#ifndef BM
#define BM 64
#endif
#ifndef BN
#define BN 64
#endif
#ifndef STAGES
#define STAGES 3
#endif
constexpr int BK = 32, WM = BM / 2, WN = BN / 2, MI = WM / 16, NI = WN / 8;
constexpr int A_BYTES = BM * BK * 2, STAGE = (BM + BN) * BK * 2, PITCH = BN * 2 + 16;
extern __shared__ __align__(128) unsigned char smem[];

__device__ __forceinline__ unsigned shared_address(const void* p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ int swizzle(int row, int chunk) {
#ifdef NO_SWIZZLE
  return row * 64 + chunk * 16;
#else
  return row * 64 + ((chunk ^ (row >> 1)) & 3) * 16;
#endif
}
__device__ __forceinline__ void copy16(unsigned to, const void* of, bool on) {
#ifdef NO_MASK
  on = true;
#endif
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(of), "r"(on ? 16 : 0));
}
__device__ __forceinline__ void ldmatrix4(unsigned (&r)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address));
}
__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ unsigned half2_of(float x, float y) {
  unsigned out;
  asm("{.reg .f16 low, high; cvt.rn.f16.f32 low, %1; cvt.rn.f16.f32 high, %2; mov.b32 %0, {low, high};}"
      : "=r"(out) : "f"(x), "f"(y));
  return out;
}

extern "C" __global__ void __launch_bounds__(128)
gemm(const unsigned short* a, const unsigned short* b, const float* bias, int m, int n, int k,
     unsigned short* out) {
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
  const int row0 = blockIdx.x * BM, col0 = blockIdx.y * BN;
  const int warp_row = warp / 2 * WM, warp_col = warp % 2 * WN;
  const int tiles = (k + BK - 1) / BK;
  auto fetch = [&](int tile) {
#ifdef WRONG_STAGE
    unsigned char* to = smem + ((tile + 1) % STAGES) * STAGE;
#else
    unsigned char* to = smem + (tile % STAGES) * STAGE;
#endif
    for (int i = tid; i < BM * 4; i += 128) {
      int row = i / 4, chunk = i % 4, at = tile * BK + chunk * 8;
      bool on = row0 + row < m && at < k;
      copy16(shared_address(to + swizzle(row, chunk)), a + (on ? (long long)(row0 + row) * k + at : 0), on);
#ifdef NO_MASK
      copy16(shared_address(to + swizzle(row, chunk)), a + (long long)(row0 + row) * k + at, on);
#endif
    }
    for (int i = tid; i < BN * 4; i += 128) {
      int row = i / 4, chunk = i % 4, at = tile * BK + chunk * 8;
      bool on = col0 + row < n && at < k;
      copy16(shared_address(to + A_BYTES + swizzle(row, chunk)), b + (on ? (long long)(col0 + row) * k + at : 0), on);
    }
  };
  for (int s = 0; s < STAGES - 1; ++s) {
    if (s < tiles) fetch(s);
    asm volatile("cp.async.commit_group;");
  }
  float acc[MI][NI][4] = {};
  for (int tile = 0; tile < tiles; ++tile) {
#ifdef LATE_WAIT
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1));
#else
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
#endif
#ifdef DIVERGENT_BARRIER
    if (warp < 2) __syncthreads();
#elif !defined(NO_BARRIER)
    __syncthreads();
#endif
#ifdef EARLY_FETCH
    if (tile + STAGES < tiles) fetch(tile + STAGES);
#else
    if (tile + STAGES - 1 < tiles) fetch(tile + STAGES - 1);
#endif
#ifndef NO_COMMIT
    asm volatile("cp.async.commit_group;");
#endif
    unsigned char* stage = smem + (tile % STAGES) * STAGE;
    for (int kk = 0; kk < 2; ++kk) {
      unsigned fa[MI][4], fb[NI / 2][4];
      for (int i = 0; i < MI; ++i)
        ldmatrix4(fa[i], shared_address(stage + swizzle(warp_row + i * 16 + lane % 16, kk * 2 + lane / 16)));
      for (int j = 0; j < NI / 2; ++j)
        ldmatrix4(fb[j], shared_address(stage + A_BYTES +
                                        swizzle(warp_col + j * 16 + lane % 8 + lane / 16 * 8, kk * 2 + lane / 8 % 2)));
      for (int i = 0; i < MI; ++i)
        for (int j = 0; j < NI; ++j) mma(acc[i][j], fa[i], fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]);
    }
  }
  asm volatile("cp.async.wait_group 0;");
#ifndef NO_EPILOGUE_BARRIER
  __syncthreads();
#endif
  for (int i = 0; i < MI; ++i)
    for (int j = 0; j < NI; ++j) {
      int row = warp_row + i * 16 + lane / 4, col = warp_col + j * 8 + lane % 4 * 2;
#ifdef WRONG_BIAS
      int at = col0 + col + 1;
#else
      int at = col0 + col;
#endif
      float b0 = at < n ? bias[at] : 0.f, b1 = at + 1 < n ? bias[at + 1] : 0.f;
      for (int h = 0; h < 2; ++h)
        *(unsigned*)(smem + (row + h * 8) * PITCH + col * 2) =
            half2_of(fmaxf(acc[i][j][h * 2] + b0, 0.f), fmaxf(acc[i][j][h * 2 + 1] + b1, 0.f));
    }
#ifndef NO_STORE_BARRIER
  __syncthreads();
#endif
  for (int i = tid; i < BM * (BN / 8); i += 128) {
    int row = i / (BN / 8), chunk = i % (BN / 8);
#ifdef NO_TAIL
    if (col0 + chunk * 8 < n)
#elif defined(HALF_OUTPUT)
    if (row0 + row < m && col0 + chunk * 8 < n && row % 2 == 0)
#else
    if (row0 + row < m && col0 + chunk * 8 < n)
#endif
      *(uint4*)(out + (long long)(row0 + row) * n + col0 + chunk * 8) = *(uint4*)(smem + row * PITCH + chunk * 16);
#ifdef TWICE
    if (row0 + row < m && col0 == 0 && chunk == 0) out[(long long)(row0 + row) * n] = 0;
#endif
  }
}
