/* wgmma_instructions.cuh -- the forms of wgmma that the kernels use, one function each; wgmma.cuh says what they do. (tests/emulated has
 * the same functions in C++, for machines without a GPU.) */
#pragma once

/* One instruction: shape and types, registers of d, then the operand numbers of a, b, accumulate (and ta, tb). */
#define MMA_16(types, list, a_, b_, p_, ta_, tb_, regs)                                                                     \
  asm volatile("{.reg .pred p; setp.ne.b32 p, " p_ ", 0; wgmma.mma_async.sync.aligned." types " {" list "}, " a_ ", " b_   \
               ", p, 1, 1, " ta_ ", " tb_ ";}" : regs : "l"(a), "l"(b), "r"(accumulate), "n"(ta), "n"(tb) : "memory")
#define MMA_K(types, list, a_, b_, p_, regs)                                                                                \
  asm volatile("{.reg .pred p; setp.ne.b32 p, " p_ ", 0; wgmma.mma_async.sync.aligned." types " {" list "}, " a_ ", " b_   \
               ", p, 1, 1;}" : regs : "l"(a), "l"(b), "r"(accumulate) : "memory")
#define MMA_I(types, list, a_, b_, p_, regs)                                                                                \
  asm volatile("{.reg .pred p; setp.ne.b32 p, " p_ ", 0; wgmma.mma_async.sync.aligned." types " {" list "}, " a_ ", " b_   \
               ", p;}" : regs : "l"(a), "l"(b), "r"(accumulate) : "memory")
#define MMA_R(types, list, a_, b_, p_, regs)                                                                                \
  asm volatile("{.reg .pred p; setp.ne.b32 p, " p_ ", 0; wgmma.mma_async.sync.aligned." types " {" list "}, {" a_ "}, " b_ \
               ", p, 1, 1;}" : regs : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate) : "memory")
#define MMA_R16(types, list, a_, b_, p_, tb_, regs)                                                                        \
  asm volatile("{.reg .pred p; setp.ne.b32 p, " p_ ", 0; wgmma.mma_async.sync.aligned." types " {" list "}, {" a_ "}, " b_ \
               ", p, 1, 1, " tb_ ";}" : regs : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(tb) : "memory")
#define F4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define R4(i) "+r"(d[i]), "+r"(d[i + 1]), "+r"(d[i + 2]), "+r"(d[i + 3])
#define F8(i) F4(i), F4(i + 4)
#define R8(i) R4(i), R4(i + 4)
#define F32(i) F8(i), F8(i + 8), F8(i + 16), F8(i + 24)
#define R32(i) R8(i), R8(i + 8), R8(i + 16), R8(i + 24)
#define REGS16 F8(0)
#define INTS16 R8(0)
#define REGS32 F8(0), F8(8)
#define INTS32 R8(0), R8(8)
#define REGS64 F32(0)
#define INTS64 R32(0)
#define REGS80  F32(0), F8(32)
#define REGS96  F32(0), F8(32), F8(40)
#define REGS128 F32(0), F32(32)
#define INTS128 R32(0), R32(32)
#define REGS160 F32(0), F32(32), F8(64), F8(72)
#define REGS176 F32(0), F32(32), F8(64), F8(72), F8(80)
#define REGS192 F32(0), F32(32), F32(64)
#define INTS192 R32(0), R32(32), R32(64)
#define REGS256 F32(0), F32(32), F32(64), F32(96)
#define INTS256 R32(0), R32(32), R32(64), R32(96)
#define L8   "%0,%1,%2,%3,%4,%5,%6,%7"
#define L16  L8 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define L32  L16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define L40  L32 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define L48  L40 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define L64  L32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define L80  L64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"
#define L88  L64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87"
#define L96  L64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define L128 L96 ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"

template <int kind, int ta, int tb> __device__ __forceinline__ void wgmma(float (&d)[8], uint64_t a, uint64_t b, int accumulate)
{
  if constexpr (kind == MMA_BF16) MMA_16("m64n16k16.f32.bf16.bf16", L8, "%8", "%9", "%10", "%11", "%12", REGS16);
  if constexpr (kind == MMA_F16) MMA_16("m64n16k16.f32.f16.f16", L8, "%8", "%9", "%10", "%11", "%12", REGS16);
  if constexpr (kind == MMA_TF32) MMA_K("m64n16k8.f32.tf32.tf32", L8, "%8", "%9", "%10", REGS16);
  if constexpr (kind == MMA_E4M3) MMA_K("m64n16k32.f32.e4m3.e4m3", L8, "%8", "%9", "%10", REGS16);
  if constexpr (kind == MMA_E4M3_E5M2) MMA_K("m64n16k32.f32.e4m3.e5m2", L8, "%8", "%9", "%10", REGS16);
  if constexpr (kind == MMA_E5M2_E4M3) MMA_K("m64n16k32.f32.e5m2.e4m3", L8, "%8", "%9", "%10", REGS16);
  if constexpr (kind == MMA_E5M2) MMA_K("m64n16k32.f32.e5m2.e5m2", L8, "%8", "%9", "%10", REGS16);
}
template <int kind, int ta, int tb> __device__ __forceinline__ void wgmma(int (&d)[8], uint64_t a, uint64_t b, int accumulate)
{
  if constexpr (kind == MMA_S8) MMA_I("m64n16k32.s32.s8.s8", L8, "%8", "%9", "%10", INTS16);
  if constexpr (kind == MMA_S8_U8) MMA_I("m64n16k32.s32.s8.u8", L8, "%8", "%9", "%10", INTS16);
  if constexpr (kind == MMA_U8_S8) MMA_I("m64n16k32.s32.u8.s8", L8, "%8", "%9", "%10", INTS16);
  if constexpr (kind == MMA_U8) MMA_I("m64n16k32.s32.u8.u8", L8, "%8", "%9", "%10", INTS16);
}
template <int kind, int ta, int tb> __device__ __forceinline__ void wgmma(float (&d)[16], uint64_t a, uint64_t b, int accumulate)
{
  if constexpr (kind == MMA_BF16) MMA_16("m64n32k16.f32.bf16.bf16", L16, "%16", "%17", "%18", "%19", "%20", REGS32);
  if constexpr (kind == MMA_F16) MMA_16("m64n32k16.f32.f16.f16", L16, "%16", "%17", "%18", "%19", "%20", REGS32);
  if constexpr (kind == MMA_TF32) MMA_K("m64n32k8.f32.tf32.tf32", L16, "%16", "%17", "%18", REGS32);
  if constexpr (kind == MMA_E4M3) MMA_K("m64n32k32.f32.e4m3.e4m3", L16, "%16", "%17", "%18", REGS32);
  if constexpr (kind == MMA_E4M3_E5M2) MMA_K("m64n32k32.f32.e4m3.e5m2", L16, "%16", "%17", "%18", REGS32);
  if constexpr (kind == MMA_E5M2_E4M3) MMA_K("m64n32k32.f32.e5m2.e4m3", L16, "%16", "%17", "%18", REGS32);
  if constexpr (kind == MMA_E5M2) MMA_K("m64n32k32.f32.e5m2.e5m2", L16, "%16", "%17", "%18", REGS32);
}
template <int kind, int ta, int tb> __device__ __forceinline__ void wgmma(int (&d)[16], uint64_t a, uint64_t b, int accumulate)
{
  if constexpr (kind == MMA_S8) MMA_I("m64n32k32.s32.s8.s8", L16, "%16", "%17", "%18", INTS32);
  if constexpr (kind == MMA_S8_U8) MMA_I("m64n32k32.s32.s8.u8", L16, "%16", "%17", "%18", INTS32);
  if constexpr (kind == MMA_U8_S8) MMA_I("m64n32k32.s32.u8.s8", L16, "%16", "%17", "%18", INTS32);
  if constexpr (kind == MMA_U8) MMA_I("m64n32k32.s32.u8.u8", L16, "%16", "%17", "%18", INTS32);
}
template <int kind, int ta, int tb> __device__ __forceinline__ void wgmma(float (&d)[32], uint64_t a, uint64_t b, int accumulate)
{
  if constexpr (kind == MMA_BF16) MMA_16("m64n64k16.f32.bf16.bf16", L32, "%32", "%33", "%34", "%35", "%36", REGS64);
  if constexpr (kind == MMA_F16) MMA_16("m64n64k16.f32.f16.f16", L32, "%32", "%33", "%34", "%35", "%36", REGS64);
  if constexpr (kind == MMA_TF32) MMA_K("m64n64k8.f32.tf32.tf32", L32, "%32", "%33", "%34", REGS64);
  if constexpr (kind == MMA_E4M3) MMA_K("m64n64k32.f32.e4m3.e4m3", L32, "%32", "%33", "%34", REGS64);
  if constexpr (kind == MMA_E4M3_E5M2) MMA_K("m64n64k32.f32.e4m3.e5m2", L32, "%32", "%33", "%34", REGS64);
  if constexpr (kind == MMA_E5M2_E4M3) MMA_K("m64n64k32.f32.e5m2.e4m3", L32, "%32", "%33", "%34", REGS64);
  if constexpr (kind == MMA_E5M2) MMA_K("m64n64k32.f32.e5m2.e5m2", L32, "%32", "%33", "%34", REGS64);
}
template <int kind, int ta, int tb> __device__ __forceinline__ void wgmma(int (&d)[32], uint64_t a, uint64_t b, int accumulate)
{
  if constexpr (kind == MMA_S8) MMA_I("m64n64k32.s32.s8.s8", L32, "%32", "%33", "%34", INTS64);
  if constexpr (kind == MMA_S8_U8) MMA_I("m64n64k32.s32.s8.u8", L32, "%32", "%33", "%34", INTS64);
  if constexpr (kind == MMA_U8_S8) MMA_I("m64n64k32.s32.u8.s8", L32, "%32", "%33", "%34", INTS64);
  if constexpr (kind == MMA_U8) MMA_I("m64n64k32.s32.u8.u8", L32, "%32", "%33", "%34", INTS64);
}
template <int kind, int ta, int tb> __device__ __forceinline__ void wgmma(float (&d)[40], uint64_t a, uint64_t b, int accumulate)
{
  if constexpr (kind == MMA_BF16) MMA_16("m64n80k16.f32.bf16.bf16", L40, "%40", "%41", "%42", "%43", "%44", REGS80);
  if constexpr (kind == MMA_F16) MMA_16("m64n80k16.f32.f16.f16", L40, "%40", "%41", "%42", "%43", "%44", REGS80);
}
template <int kind, int ta, int tb> __device__ __forceinline__ void wgmma(float (&d)[88], uint64_t a, uint64_t b, int accumulate)
{
  if constexpr (kind == MMA_BF16) MMA_16("m64n176k16.f32.bf16.bf16", L88, "%88", "%89", "%90", "%91", "%92", REGS176);
  if constexpr (kind == MMA_F16) MMA_16("m64n176k16.f32.f16.f16", L88, "%88", "%89", "%90", "%91", "%92", REGS176);
}
template <int kind, int ta, int tb> __device__ __forceinline__ void wgmma(float (&d)[64], uint64_t a, uint64_t b, int accumulate)
{
  if constexpr (kind == MMA_BF16) MMA_16("m64n128k16.f32.bf16.bf16", L64, "%64", "%65", "%66", "%67", "%68", REGS128);
  if constexpr (kind == MMA_F16) MMA_16("m64n128k16.f32.f16.f16", L64, "%64", "%65", "%66", "%67", "%68", REGS128);
  if constexpr (kind == MMA_TF32) MMA_K("m64n128k8.f32.tf32.tf32", L64, "%64", "%65", "%66", REGS128);
  if constexpr (kind == MMA_E4M3) MMA_K("m64n128k32.f32.e4m3.e4m3", L64, "%64", "%65", "%66", REGS128);
  if constexpr (kind == MMA_E4M3_E5M2) MMA_K("m64n128k32.f32.e4m3.e5m2", L64, "%64", "%65", "%66", REGS128);
  if constexpr (kind == MMA_E5M2_E4M3) MMA_K("m64n128k32.f32.e5m2.e4m3", L64, "%64", "%65", "%66", REGS128);
  if constexpr (kind == MMA_E5M2) MMA_K("m64n128k32.f32.e5m2.e5m2", L64, "%64", "%65", "%66", REGS128);
}
template <int kind, int ta, int tb> __device__ __forceinline__ void wgmma(int (&d)[64], uint64_t a, uint64_t b, int accumulate)
{
  if constexpr (kind == MMA_S8) MMA_I("m64n128k32.s32.s8.s8", L64, "%64", "%65", "%66", INTS128);
  if constexpr (kind == MMA_S8_U8) MMA_I("m64n128k32.s32.s8.u8", L64, "%64", "%65", "%66", INTS128);
  if constexpr (kind == MMA_U8_S8) MMA_I("m64n128k32.s32.u8.s8", L64, "%64", "%65", "%66", INTS128);
  if constexpr (kind == MMA_U8) MMA_I("m64n128k32.s32.u8.u8", L64, "%64", "%65", "%66", INTS128);
}
template <int kind, int ta, int tb> __device__ __forceinline__ void wgmma(float (&d)[80], uint64_t a, uint64_t b, int accumulate)
{
  if constexpr (kind == MMA_BF16) MMA_16("m64n160k16.f32.bf16.bf16", L80, "%80", "%81", "%82", "%83", "%84", REGS160);
  if constexpr (kind == MMA_F16) MMA_16("m64n160k16.f32.f16.f16", L80, "%80", "%81", "%82", "%83", "%84", REGS160);
}
template <int kind, int ta, int tb> __device__ __forceinline__ void wgmma(float (&d)[96], uint64_t a, uint64_t b, int accumulate)
{
  if constexpr (kind == MMA_BF16) MMA_16("m64n192k16.f32.bf16.bf16", L96, "%96", "%97", "%98", "%99", "%100", REGS192);
  if constexpr (kind == MMA_F16) MMA_16("m64n192k16.f32.f16.f16", L96, "%96", "%97", "%98", "%99", "%100", REGS192);
  if constexpr (kind == MMA_TF32) MMA_K("m64n192k8.f32.tf32.tf32", L96, "%96", "%97", "%98", REGS192);
  if constexpr (kind == MMA_E4M3) MMA_K("m64n192k32.f32.e4m3.e4m3", L96, "%96", "%97", "%98", REGS192);
  if constexpr (kind == MMA_E4M3_E5M2) MMA_K("m64n192k32.f32.e4m3.e5m2", L96, "%96", "%97", "%98", REGS192);
  if constexpr (kind == MMA_E5M2_E4M3) MMA_K("m64n192k32.f32.e5m2.e4m3", L96, "%96", "%97", "%98", REGS192);
  if constexpr (kind == MMA_E5M2) MMA_K("m64n192k32.f32.e5m2.e5m2", L96, "%96", "%97", "%98", REGS192);
}
template <int kind, int ta, int tb> __device__ __forceinline__ void wgmma(int (&d)[96], uint64_t a, uint64_t b, int accumulate)
{
  if constexpr (kind == MMA_S8) MMA_I("m64n192k32.s32.s8.s8", L96, "%96", "%97", "%98", INTS192);
  if constexpr (kind == MMA_S8_U8) MMA_I("m64n192k32.s32.s8.u8", L96, "%96", "%97", "%98", INTS192);
  if constexpr (kind == MMA_U8_S8) MMA_I("m64n192k32.s32.u8.s8", L96, "%96", "%97", "%98", INTS192);
  if constexpr (kind == MMA_U8) MMA_I("m64n192k32.s32.u8.u8", L96, "%96", "%97", "%98", INTS192);
}
template <int kind, int ta, int tb> __device__ __forceinline__ void wgmma(float (&d)[128], uint64_t a, uint64_t b, int accumulate)
{
  if constexpr (kind == MMA_BF16) MMA_16("m64n256k16.f32.bf16.bf16", L128, "%128", "%129", "%130", "%131", "%132", REGS256);
  if constexpr (kind == MMA_F16) MMA_16("m64n256k16.f32.f16.f16", L128, "%128", "%129", "%130", "%131", "%132", REGS256);
  if constexpr (kind == MMA_TF32) MMA_K("m64n256k8.f32.tf32.tf32", L128, "%128", "%129", "%130", REGS256);
  if constexpr (kind == MMA_E4M3) MMA_K("m64n256k32.f32.e4m3.e4m3", L128, "%128", "%129", "%130", REGS256);
  if constexpr (kind == MMA_E4M3_E5M2) MMA_K("m64n256k32.f32.e4m3.e5m2", L128, "%128", "%129", "%130", REGS256);
  if constexpr (kind == MMA_E5M2_E4M3) MMA_K("m64n256k32.f32.e5m2.e4m3", L128, "%128", "%129", "%130", REGS256);
  if constexpr (kind == MMA_E5M2) MMA_K("m64n256k32.f32.e5m2.e5m2", L128, "%128", "%129", "%130", REGS256);
}
template <int kind, int ta, int tb> __device__ __forceinline__ void wgmma(int (&d)[128], uint64_t a, uint64_t b, int accumulate)
{
  if constexpr (kind == MMA_S8) MMA_I("m64n256k32.s32.s8.s8", L128, "%128", "%129", "%130", INTS256);
  if constexpr (kind == MMA_S8_U8) MMA_I("m64n256k32.s32.s8.u8", L128, "%128", "%129", "%130", INTS256);
  if constexpr (kind == MMA_U8_S8) MMA_I("m64n256k32.s32.u8.s8", L128, "%128", "%129", "%130", INTS256);
  if constexpr (kind == MMA_U8) MMA_I("m64n256k32.s32.u8.u8", L128, "%128", "%129", "%130", INTS256);
}

/* a from registers, tf32: thread t holds rows 16w + g (a[0], a[2]) and g + 8 (a[1], a[3]), k q (a[0], a[1]) and q + 4. */
__device__ __forceinline__ void wgmma_tf32(float (&d)[8], const uint32_t *a, uint64_t b, int accumulate)
{
  MMA_R("m64n16k8.f32.tf32.tf32", L8, "%8, %9, %10, %11", "%12", "%13", REGS16);
}
__device__ __forceinline__ void wgmma_tf32(float (&d)[16], const uint32_t *a, uint64_t b, int accumulate)
{
  MMA_R("m64n32k8.f32.tf32.tf32", L16, "%16, %17, %18, %19", "%20", "%21", REGS32);
}
__device__ __forceinline__ void wgmma_tf32(float (&d)[32], const uint32_t *a, uint64_t b, int accumulate)
{
  MMA_R("m64n64k8.f32.tf32.tf32", L32, "%32, %33, %34, %35", "%36", "%37", REGS64);
}
__device__ __forceinline__ void wgmma_tf32(float (&d)[64], const uint32_t *a, uint64_t b, int accumulate)
{
  MMA_R("m64n128k8.f32.tf32.tf32", L64, "%64, %65, %66, %67", "%68", "%69", REGS128);
}
__device__ __forceinline__ void wgmma_tf32(float (&d)[96], const uint32_t *a, uint64_t b, int accumulate)
{
  MMA_R("m64n192k8.f32.tf32.tf32", L96, "%96, %97, %98, %99", "%100", "%101", REGS192);
}
__device__ __forceinline__ void wgmma_tf32(float (&d)[128], const uint32_t *a, uint64_t b, int accumulate)
{
  MMA_R("m64n256k8.f32.tf32.tf32", L128, "%128, %129, %130, %131", "%132", "%133", REGS256);
}

/* The same with bf16 or f16 a from registers: a[0], a[1] are rows 16w + g and g + 8, k 2q and the next; a[2], a[3] those 8 further in k. */
template <int kind, int tb> __device__ __forceinline__ void wgmma_registers(float (&d)[16], const uint32_t *a, uint64_t b, int accumulate)
{
  if constexpr (kind == MMA_BF16)
    MMA_R16("m64n32k16.f32.bf16.bf16", L16, "%16, %17, %18, %19", "%20", "%21", "%22", REGS32);
  if constexpr (kind == MMA_F16)
    MMA_R16("m64n32k16.f32.f16.f16", L16, "%16, %17, %18, %19", "%20", "%21", "%22", REGS32);
}
template <int kind, int tb> __device__ __forceinline__ void wgmma_registers(float (&d)[32], const uint32_t *a, uint64_t b, int accumulate)
{
  if constexpr (kind == MMA_BF16)
    MMA_R16("m64n64k16.f32.bf16.bf16", L32, "%32, %33, %34, %35", "%36", "%37", "%38", REGS64);
  if constexpr (kind == MMA_F16)
    MMA_R16("m64n64k16.f32.f16.f16", L32, "%32, %33, %34, %35", "%36", "%37", "%38", REGS64);
}
template <int kind, int tb> __device__ __forceinline__ void wgmma_registers(float (&d)[48], const uint32_t *a, uint64_t b, int accumulate)
{
  if constexpr (kind == MMA_BF16)
    MMA_R16("m64n96k16.f32.bf16.bf16", L48, "%48, %49, %50, %51", "%52", "%53", "%54", REGS96);
  if constexpr (kind == MMA_F16)
    MMA_R16("m64n96k16.f32.f16.f16", L48, "%48, %49, %50, %51", "%52", "%53", "%54", REGS96);
}
template <int kind, int tb> __device__ __forceinline__ void wgmma_registers(float (&d)[64], const uint32_t *a, uint64_t b, int accumulate)
{
  if constexpr (kind == MMA_BF16)
    MMA_R16("m64n128k16.f32.bf16.bf16", L64, "%64, %65, %66, %67", "%68", "%69", "%70", REGS128);
  if constexpr (kind == MMA_F16)
    MMA_R16("m64n128k16.f32.f16.f16", L64, "%64, %65, %66, %67", "%68", "%69", "%70", REGS128);
}
template <int kind, int tb> __device__ __forceinline__ void wgmma_registers(float (&d)[128], const uint32_t *a, uint64_t b, int accumulate)
{
  if constexpr (kind == MMA_BF16)
    MMA_R16("m64n256k16.f32.bf16.bf16", L128, "%128, %129, %130, %131", "%132", "%133", "%134", REGS256);
  if constexpr (kind == MMA_F16)
    MMA_R16("m64n256k16.f32.f16.f16", L128, "%128, %129, %130, %131", "%132", "%133", "%134", REGS256);
}

#undef MMA_16
#undef MMA_R16
#undef MMA_R
#undef MMA_K
#undef MMA_I
#undef F4
#undef R4
#undef F8
#undef R8
#undef F32
#undef R32
#undef L8
#undef L16
#undef L32
#undef L40
#undef L64
#undef L80
#undef L88
#undef L96
#undef L128
#undef REGS16
#undef REGS32
#undef REGS64
#undef REGS80
#undef REGS128
#undef REGS160
#undef REGS176
#undef REGS192
#undef REGS256
#undef INTS16
#undef INTS32
#undef INTS64
#undef INTS128
#undef INTS192
#undef INTS256
