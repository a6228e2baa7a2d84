// Convolution as a matrix product that is never laid out: [pixels x taps * channels] times
// [taps * channels x outputs], 16-bit elements, FP32 sums, on Tensor Cores.
//
// A block makes one tile of kRows pixels by kColumns outputs; the depth runs in steps of kDepth
// through kStages tiles in shared memory. Weights come packed as those very tiles, swizzle and all
// (see trtplug/tactics/packing.py), so that they are copied in a straight line.
#pragma once

#include "cbr/geometry.cuh"
#include "common/mma.cuh"

namespace trtplug {

template <int rows, int columns, int depth, int warp_rows, int warp_columns, int stages>
struct Tile {
  static constexpr int kRows = rows;
  static constexpr int kColumns = columns;
  static constexpr int kDepth = depth;
  static constexpr int kWarpRows = warp_rows;
  static constexpr int kWarpColumns = warp_columns;
  static constexpr int kStages = stages;
  static constexpr int kThreads = rows / warp_rows * (columns / warp_columns) * 32;
  static constexpr int kChunks = depth / 8;
  static constexpr int kBytesA = rows * depth * 2;
  static constexpr int kBytesB = columns * depth * 2;
  static constexpr int kStageBytes = kBytesA + kBytesB;
  static constexpr int kOutputBytes = rows * columns * 2;
  static constexpr int kBytes =
      kStages * kStageBytes > kOutputBytes ? kStages* kStageBytes : kOutputBytes;

  static_assert(rows % warp_rows == 0 && columns % warp_columns == 0, "warps fill the tile");
  static_assert(warp_rows % 16 == 0 && warp_columns % 16 == 0, "products of 16 by two times 8");
  static_assert(depth == 32 || depth == 64, "a row is 64 or 128 bytes");
  static_assert(columns % 32 == 0, "a row of outputs is 64 bytes or a multiple of 128");
  static_assert(kBytesB % (kThreads * 16) == 0, "each thread copies as many weights");
  static_assert(kBytes <= 48 * 1024, "static shared memory ends at 48 KiB");
};

// How operands come to shared memory: past the registers (sm_80 and above), or through them.
struct Asynchronous {};
struct Staged {};

// This thread's part in filling a tile with weights. A warp takes a run of its own, so that a
// constant reaches all of it from one pointer.
template <class Site, class Tile>
class WeightLoader {
 public:
  static constexpr int kPieces = Tile::kBytesB / 16 / Tile::kThreads;

  __device__ __forceinline__ WeightLoader(const void* weights, int tiles) {
    const int warp = threadIdx.x / 32;
    to_ = (warp * kPieces * 32 + threadIdx.x % 32) * 16;
    const long long tile = static_cast<long long>(blockIdx.z) * gridDim.y + blockIdx.y;
    from_ = static_cast<const char*>(weights) + tile * tiles * Tile::kBytesB + to_;
  }

#if TRTPLUG_SM >= 80
  __device__ __forceinline__ void copy(unsigned tile) const {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      copy_async(tile + Tile::kBytesA + to_ + i * 512, from_ + i * 512);
    }
  }
#endif

  __device__ __forceinline__ void load() {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      staged_[i] = load_global_16(from_ + i * 512);
    }
  }

  __device__ __forceinline__ void store(unsigned tile) const {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      store_shared(tile + Tile::kBytesA + to_ + i * 512, staged_[i]);
    }
  }

  __device__ __forceinline__ void advance() { from_ += Tile::kBytesB; }

 private:
  const char* from_;
  unsigned to_;
  uint4 staged_[kPieces];
};

// One warp's share of the product of two tiles in shared memory.
template <class Element, class Tile>
class WarpProduct {
 public:
  static constexpr int kDown = Tile::kWarpRows / 16;
  static constexpr int kAcross = Tile::kWarpColumns / 8;

  __device__ __forceinline__ WarpProduct() {
    constexpr int kWarpsAcross = Tile::kColumns / Tile::kWarpColumns;
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    row_ = warp / kWarpsAcross * Tile::kWarpRows;
    column_ = warp % kWarpsAcross * Tile::kWarpColumns;
    a_ = swizzled<Tile::kChunks>(row_ + lane % 16, lane / 16);
    b_ = swizzled<Tile::kChunks>(column_ + lane / 16 * 8 + lane % 8, lane / 8 % 2);
    // Hides how they came about: the compiler would work them out anew in every step.
    asm("" : "+r"(a_), "+r"(b_));
#pragma unroll
    for (int i = 0; i < kDown * kAcross; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        sums_[i / kAcross][i % kAcross][j] = 0.0f;
      }
    }
  }

  static constexpr int kSlices = Tile::kDepth / 16;

  // Adds slices `from` to `to` of a tile, each 16 deep.
  __device__ __forceinline__ void add(unsigned tile, int from = 0, int to = kSlices) {
#pragma unroll
    for (int k = from; k < to; ++k) {
      unsigned a[kDown][4];
      unsigned b[kAcross / 2][4];
      // Two chunks further along a row is a bit of the swizzled address flipped.
      const unsigned from_a = tile + (a_ ^ (k * 32));
      const unsigned from_b = tile + Tile::kBytesA + (b_ ^ (k * 32));
#pragma unroll
      for (int i = 0; i < kDown; ++i) {
        load_matrices(a[i], from_a + i * (16 * Tile::kDepth * 2));
      }
#pragma unroll
      for (int j = 0; j < kAcross / 2; ++j) {
        load_matrices(b[j], from_b + j * (16 * Tile::kDepth * 2));
      }
#pragma unroll
      for (int i = 0; i < kDown; ++i) {
#pragma unroll
        for (int j = 0; j < kAcross; ++j) {
          multiply_add<Element>(sums_[i][j], a[i], &b[j / 2][j % 2 * 2]);
        }
      }
    }
  }

  // Calls `take(at, rows, first, second)` for each pair of neighbours in a row of the tile; `at` is
  // what `begin(row, column)` gave for the first of those in one place across, `rows` further down.
  // A multiple of 8: the swizzle is the same there.
  template <class Begin, class Take>
  __device__ __forceinline__ void each_pair(Begin begin, Take take) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < kAcross; ++j) {
      const auto at = begin(row_ + lane / 4, column_ + j * 8 + lane % 4 * 2);
#pragma unroll
      for (int i = 0; i < kDown * 2; ++i) {
        take(at, i * 8, sums_[i / 2][j][i % 2 * 2], sums_[i / 2][j][i % 2 * 2 + 1]);
      }
    }
  }

 private:
  float sums_[kDown][kAcross][4];
  unsigned a_;
  unsigned b_;
  int row_;
  int column_;
};

#if TRTPLUG_SM >= 80
// Sums over all tiles, kStages - 1 of them on their way while one is in work.
template <class Tile, int kTiles, class Loader, class Weights, class Product>
__device__ __forceinline__ void run(Asynchronous, unsigned shared, Loader& loader, Weights& weights,
                                    Product& product) {
  constexpr int kAhead = Tile::kStages - 1;
  const auto fetch = [&](int stage, bool is_there) {
    if (is_there) {
      loader.copy(shared + stage * Tile::kStageBytes);
      weights.copy(shared + stage * Tile::kStageBytes);
      loader.advance();
      weights.advance();
    }
    commit_copies();  // Of nothing too: the wait counts one group a tile.
  };
  const auto step = [&](int stage, bool more) {
    wait_copies<kAhead - 1>();
    // All have copied this tile, and finished the one before it: its place is free to be filled.
    __syncthreads();
    fetch((stage + kAhead) % Tile::kStages, more);
    product.add(shared + stage * Tile::kStageBytes);
  };
#pragma unroll
  for (int i = 0; i < kAhead; ++i) {
    fetch(i, i < kTiles);
  }
#pragma unroll 1
  for (int i = 0; i < kTiles; i += Tile::kStages) {
#pragma unroll
    for (int stage = 0; stage < Tile::kStages; ++stage) {
      if (kTiles % Tile::kStages != 0 && i + stage == kTiles) {
        break;
      }
      step(stage, i + stage + kAhead < kTiles);
    }
  }
}
#endif

// The same through registers, with two tiles: for sm_75, and for operands that need work on the
// way. First one operand is on its way, then the other: both at once would not fit the registers of
// the largest tile.
template <class Tile, int kTiles, class Loader, class Weights, class Product>
__device__ __forceinline__ void run(Staged, unsigned shared, Loader& loader, Weights& weights,
                                    Product& product) {
  static_assert(Tile::kStages == 2, "one tile in work, one being filled");
  const auto step = [&](int stage, bool more) {
    const unsigned now = shared + stage * Tile::kStageBytes;
    const unsigned next = shared + (1 - stage) * Tile::kStageBytes;
    if (more) {
      loader.load();
    }
    product.add(now, 0, Product::kSlices / 2);
    if (more) {
      loader.store(next);
      weights.load();
    }
    product.add(now, Product::kSlices / 2);
    if (more) {
      weights.store(next);
      loader.advance();
      weights.advance();
      __syncthreads();
    }
  };
  loader.load();
  loader.store(shared);
  weights.load();
  weights.store(shared);
  loader.advance();
  weights.advance();
  __syncthreads();
  if (Loader::kUnrolled) {
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      step(i % 2, i + 1 < kTiles);
    }
  } else {
#pragma unroll 1
    for (int i = 0; i < kTiles; ++i) {
      step(i % 2, i + 1 < kTiles);
    }
  }
}

// Bias, residual and activation, and the way out through shared memory in 16-byte stores.
template <class Site, class Tile, class Product>
__device__ __forceinline__ void write_tile(unsigned shared, const Product& product,
                                           const float* bias,
                                           const typename Site::Element* residual,
                                           typename Site::Element* y, int count) {
  using Element = typename Site::Element;
  constexpr int kChunks = Tile::kColumns / 8;
  constexpr int kPieces = Tile::kOutputBytes / 16 / Tile::kThreads;
  constexpr int kGroupOutputs = Site::kOutputs / Site::kGroups;
  constexpr int kVectors = divide_up(kGroupOutputs, 8);
  constexpr int kPixel = padded(Site::kOutputs);
  const int first_row = blockIdx.x * Tile::kRows;
  const int first_column = blockIdx.y * Tile::kColumns;
  const long long before = static_cast<long long>(first_row) * kPixel + first_column +
                           static_cast<int>(blockIdx.z) * kGroupOutputs;
  const auto each_piece = [&](auto take) {
  // Not all at once: the sums take most of the registers.
#pragma unroll 2
    for (int i = 0; i < kPieces; ++i) {
      const int place = i * Tile::kThreads + threadIdx.x;
      const int row = place / kChunks;
      const int chunk = place % kChunks;
      const bool inside = first_row + row < count && (kGroupOutputs % Tile::kColumns == 0 ||
                                                      first_column / 8 + chunk < kVectors);
      take(shared + swizzled<kChunks>(row, chunk), inside,
           before + static_cast<long long>(row) * kPixel + chunk * 8);
    }
  };
  __syncthreads();
  if (Site::kResidual != Residual::kNone) {
#if TRTPLUG_SM >= 80
    each_piece([&](unsigned place, bool inside, long long offset) {
      copy_async(place, residual + (inside ? offset : 0), inside ? 16 : 0);
    });
    commit_copies();
    wait_copies<0>();
#else
    each_piece([&](unsigned place, bool inside, long long offset) {
      store_shared(place, inside ? load_global_16(residual + offset) : make_uint4(0, 0, 0, 0));
    });
#endif
    __syncthreads();
  }
  const float* biases = bias + (blockIdx.z * gridDim.y + blockIdx.y) * Tile::kColumns;
  const ActivationValues values = Site::values();
  struct Place {
    unsigned address;
    float2 shift;
    bool first;
    bool second;
  };
  product.each_pair(
      [&](int row, int column) {
        return Place{shared + swizzled<kChunks>(row, column / 8) + column % 8 * 2,
                     __ldg(reinterpret_cast<const float2*>(biases + column)),
                     first_column + column < kGroupOutputs,
                     first_column + column + 1 < kGroupOutputs};
      },
      [&](const Place& at, int rows, float first, float second) {
        const unsigned place = at.address + rows * (Tile::kColumns * 2);
        // Each pair is read and written by the one thread that has its sum.
        float2 old = make_float2(0.0f, 0.0f);
        if (Site::kResidual != Residual::kNone) {
          old = unpack<Element>(load_shared_4(place));
        }
        first = finish<Site::kActivation, Site::kResidual>(first + at.shift.x, old.x, values);
        second = finish<Site::kActivation, Site::kResidual>(second + at.shift.y, old.y, values);
        if (kGroupOutputs % 8 != 0) {
          first = at.first ? first : 0.0f;
          second = at.second ? second : 0.0f;
        }
        store_shared(place, pack<Element>(first, second));
      });
  __syncthreads();
  each_piece([&](unsigned place, bool inside, long long offset) {
    if (inside) {
      store_global_16(y + offset, load_shared_16(place));
    }
  });
}

template <class Site, class Tile, template <class, class> class Loader, class Way, class Input>
__device__ __forceinline__ void implicit_gemm(const Input* x, const typename Site::Element* weights,
                                              const float* bias,
                                              const typename Site::Element* residual,
                                              typename Site::Element* y, const Extents& at) {
  using Feeder = Loader<Site, Tile>;
  static_assert(Site::kGroups == 1 || Site::kOutputs / Site::kGroups % 8 == 0,
                "a group's outputs begin with a whole chunk");
  __shared__ __align__(128) unsigned char memory[Tile::kBytes];
  const unsigned shared = shared_address(memory);
  const int count = at.batch * at.rows * at.columns;
  Feeder loader(x, at, blockIdx.x * Tile::kRows, count, blockIdx.z);
  WeightLoader<Site, Tile> from(weights, Feeder::kTiles);
  WarpProduct<typename Site::Element, Tile> product;
  run<Tile, Feeder::kTiles>(Way{}, shared, loader, from, product);
  write_tile<Site, Tile>(shared, product, bias, residual, y, count);
}

}  // namespace trtplug
