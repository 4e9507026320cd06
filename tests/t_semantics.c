/* t_semantics -- what the ops mean where libraries disagree, as tables worked out by hand. Each row runs twice: on the engine
 * that the planner prefers, and on the oracle. Equal means equal: every expected number is exact in its dtype, but for the
 * last table's, which are rounded. */
#include <quern/kit.h>
#include <quern/tools.h>
#include <stdlib.h>
#include "tap.h"

/* in and out: the numbers of each tensor in the order of roles, row-major, tensors divided by "|". */
typedef struct golden { const char *rule, *line, *in, *out; } golden;

static const golden casts[] = {
  { "f32 to f16 rounds to nearest even and overflows to Inf", "cast x=f32/11 y=f16/11",
    "65519 65520 -65520 2049 2051 0x1p-24 0x1p-25 0x1.8p-25 nan inf -inf",
    "65504 inf -inf 2048 2052 0x1p-24 0 0x1p-24 nan inf -inf" },
  { "f64 to f16 rounds once, not by way of f32", "cast x=f64/2 y=f16/2", "0x1.0020000001p0 0x1.001ffffffp0", "0x1.004p0 1" },
  { "f64 to bf16 rounds once, not by way of f32", "cast x=f64/2 y=bf16/2", "0x1.0100000001p0 0x1.00fffffffp0", "0x1.02p0 1" },
  { "f64 to f32", "cast x=f64/4 y=f32/4", "0x1.000001p0 0x1.000003p0 1e39 0x1p-149", "1 0x1.000004p0 inf 0x1p-149" },
  { "f32 to bf16", "cast x=f32/4 y=bf16/4", "257 259 3.4e38 0x1p-133", "256 260 inf 0x1p-133" },
  { "f32 to e4m3 saturates", "cast x=f32/9 y=e4m3/9", "448 449 1e9 -1e9 inf nan 17 19 0x1p-9", "448 448 448 -448 448 nan 16 20 0x1p-9" },
  { "f32 to e5m2 saturates", "cast x=f32/7 y=e5m2/7", "57344 1e9 -1e9 inf nan 9 11", "57344 57344 -57344 57344 nan 8 12" },
  { "f32 to i8 rounds to nearest even and saturates, NaN is 0", "cast x=f32/10 y=i8/10",
    "0.5 1.5 2.5 -0.5 -1.5 127.5 1000 -1000 nan inf", "0 2 2 0 -2 127 127 -128 0 127" },
  { "f32 to u8", "cast x=f32/6 y=u8/6", "-1 0.4 255 255.5 -inf nan", "0 0 255 255 0 0" },
  { "f64 to i64 saturates", "cast x=f64/3 y=i64/3", "1e30 -1e30 0x1p62", "9223372036854775807 -9223372036854775808 4611686018427387904" },
  { "integers to narrower integers saturate", "cast x=i32/4 y=i8/4", "127 128 -129 5", "127 127 -128 5" },
  { "i64 to i64 keeps every bit", "cast x=i64/2 y=i64/2", "9007199254740993 -9223372036854775807", "9007199254740993 -9223372036854775807" },
  { "i64 to bf16 rounds once, not by way of f64", "cast x=i64/1 y=bf16/1", "72339069014638593", "0x1.02p56" },
  { "to bool: whatever is not 0", "cast x=f32/5 y=bool/5", "0 -0 0.1 nan -3", "0 0 1 1 1" },
  { "bool to numbers", "cast x=bool/2 y=f32/2", "0 1", "0 1" },
};

static const golden matmuls[] = {
  { "rows times columns", "matmul a=f32/2x3 b=f32/3x2", "1 2 3 4 5 6 | 1 0 0 1 1 1", "4 5 10 11" },
  { "a transpose is a view", "matmul a=f32/2x2/t b=f32/2x2", "1 2 3 4 | 1 0 0 1", "1 2 3 4" },
  { "y = alpha a b + beta c + bias", "matmul a=f32/1x2 b=f32/2x2 c=f32/1x2 bias=f32/2 alpha=2 beta=0.5",
    "1 1 | 1 2 3 4 | 10 20 | 100 200", "113 222" },
  { "beta is 1 if there is a c", "matmul a=f32/1x1 b=f32/1x1 c=f32/1x1", "3 | 5 | 7", "22" },
  { "alpha 0 never reads a or b", "matmul a=f32/1x2 b=f32/2x2 c=f32/1x2 alpha=0 beta=2", "nan nan | inf nan 3 4 | 10 20", "20 40" },
  { "beta 0 never reads c", "matmul a=f32/1x2 b=f32/2x2 c=f32/1x2 beta=0", "1 1 | 1 2 3 4 | nan inf", "4 6" },
  { "K 0 writes beta c + bias", "matmul a=f32/2x0 b=f32/0x2 c=f32/2x2 bias=f32/2 beta=2", "| | 1 2 3 4 | 10 20", "12 24 16 28" },
  { "K 0 alone writes zeros", "matmul a=f32/2x0 b=f32/0x2", "|", "0 0 0 0" },
  { "leading dims broadcast", "matmul a=f32/2x1x1x2 b=f32/1x2x2x1", "1 2 3 4 | 1 1 0 1", "3 2 7 4" },
  { "NaN and Inf go through", "matmul a=f32/2x2 b=f32/2x1", "nan 1 inf 1 | 1 -1", "nan inf" },
  { "0 times Inf is NaN", "matmul a=f32/1x2 b=f32/2x1", "0 1 | inf 1", "nan" },
  { "f16 is summed in f32", "matmul a=f16/1x4 b=f16/4x1", "2048 1 1 1 | 1 1 1 -1", "2049", },
  { "f16 with f32 output", "matmul a=f16/1x2 b=f16/2x1 y=f32/1x1", "60000 60000 | 1 1", "120000" },
  { "f16 overflows to Inf", "matmul a=f16/1x2 b=f16/2x1", "60000 60000 | 1 1", "inf" },
  { "bf16 rounds once, after bias and c", "matmul a=bf16/1x1 b=bf16/1x1 c=bf16/1x1 bias=bf16/1", "256 | 1 | 1 | 1", "258" },
  { "i8 times u8 in i32, exactly", "matmul a=i8/1x2 b=u8/2x1", "-128 -128 | 255 255", "-65280" },
  { "i8 with c and bias", "matmul a=i8/1x1 b=i8/1x1 c=i32/1x1 bias=i32/1", "3 | 5 | 2147483647 | 1", "-2147483633" },
  { "e4m3 times e5m2", "matmul a=e4m3/1x2 b=e5m2/2x1 y=f32/1x1", "448 0.5 | 2 4", "898" },
  { "a scalar becomes f32 in an f32 matmul", "matmul a=f32/1x1 b=f32/1x1 c=f32/1x1 alpha=1.00000000023283064",
    "1 | 1 | -1", "0" },
};

static const golden convolutions[] = {
  { "cross-correlation: the filter is not flipped", "conv_forward x=f32/1x1x3 w=f32/1x1x2", "1 2 3 | 10 1", "12 23" },
  { "padding before and after", "conv_forward x=f32/1x1x2 w=f32/1x1x2 pad=2:1", "1 2 | 10 1", "0 1 12 20" },
  { "stride and dilation", "conv_forward x=f32/1x1x7 w=f32/1x1x2 stride=2 dilation=3", "1 2 3 4 5 6 7 | 10 1", "14 36" },
  { "groups", "conv_forward x=f32/1x4x1 w=f32/2x2x1 groups=2", "1 2 3 4 | 1 10 100 1000", "21 4300" },
  { "depthwise, two filters for each channel", "conv_forward x=f32/1x2x1 w=f32/4x1x1 groups=2", "3 5 | 1 2 3 4", "3 6 15 20" },
  { "channels, then bias", "conv_forward x=f32/1x2x1x1 w=f32/2x2x1x1 bias=f32/2", "1 2 | 1 1 1 -1 | 10 20", "13 19" },
  { "two spatial dims", "conv_forward x=f32/1x1x2x3 w=f32/1x1x2x2", "1 2 3 4 5 6 | 1 10 100 1000", "5421 6532" },
  { "two spatial dims, unlike in pad and stride", "conv_forward x=f32/1x1x2x3 w=f32/1x1x2x2 pad=0:1,1:0 stride=1,2",
    "1 2 3 4 5 6 | 1 10 100 1000", "4010 6532 40 65" },
  { "three spatial dims", "conv_forward x=f32/1x1x2x1x2 w=f32/1x1x2x1x1", "1 2 3 4 | 1 10", "31 42" },
  { "i8", "conv_forward x=u8/1x1x2 w=i8/1x1x2", "255 255 | -128 -128", "-65280" },
  { "gradient by x", "conv_backward_data dy=f32/1x1x2 w=f32/1x1x2 dx=f32/1x1x3", "1 2 | 10 1", "10 21 2" },
  { "gradient by x, with padding", "conv_backward_data dy=f32/1x1x3 w=f32/1x1x2 dx=f32/1x1x2 pad=1", "1 2 3 | 10 1", "21 32" },
  { "gradient by x, stride 2: dx's dims choose", "conv_backward_data dy=f32/1x1x2 w=f32/1x1x2 dx=f32/1x1x5 stride=2", "1 2 | 10 1", "10 1 20 2 0" },
  { "gradient by x, groups", "conv_backward_data dy=f32/1x2x1 w=f32/2x2x1 dx=f32/1x4x1 groups=2", "3 5 | 1 10 100 1000", "3 30 500 5000" },
  { "gradient by w", "conv_backward_filter x=f32/1x1x3 dy=f32/1x1x2 dw=f32/1x1x2", "1 2 3 | 10 1", "12 23" },
  { "gradient by w, with padding", "conv_backward_filter x=f32/1x1x2 dy=f32/1x1x3 dw=f32/1x1x2 pad=1", "1 2 | 100 10 1", "12 120" },
  { "gradient by w, over the batch", "conv_backward_filter x=f32/2x1x1 dy=f32/2x1x1 dw=f32/1x1x1", "1 2 | 10 100", "210" },
  { "gradient by w, groups", "conv_backward_filter x=f32/1x4x1 dy=f32/1x2x1 dw=f32/2x2x1 groups=2", "1 2 3 4 | 10 100", "10 20 300 400" },
};

static const golden softmaxes[] = {
  { "softmax of equals", "softmax x=f32/2x2", "0 0 1000 1000", "0.5 0.5 0.5 0.5" },
  { "softmax does not overflow", "softmax x=f32/1x2", "-1e30 1e30", "0 1" },
  { "softmax of -Inf is 0", "softmax x=f32/1x3", "-inf 5 -inf", "0 1 0" },
  { "a row with NaN, +Inf, or all -Inf is NaN throughout", "softmax x=f32/4x2", "nan 0 inf 0 -inf -inf 7 7", "nan nan nan nan nan nan 0.5 0.5" },
  { "softmax along another axis", "softmax x=f32/2x2 axis=0", "1 -inf 1 3", "0.5 0 0.5 1" },
  { "log_softmax of one is 0", "log_softmax x=f32/2x1", "5 -3", "0 0" },
  { "log_softmax of -Inf is -Inf", "log_softmax x=f32/1x2", "3 -inf", "0 -inf" },
  { "log_softmax rows of NaN", "log_softmax x=f32/3x2", "nan 0 inf 0 -inf -inf", "nan nan nan nan nan nan" },
  { "softmax gradient", "softmax_backward y=f32/1x2 dy=f32/1x2", "0.5 0.5 | 1 0", "0.25 -0.25" },
  { "log_softmax gradient", "log_softmax_backward y=f32/1x2 dy=f32/1x2", "0 -inf | 1 2", "-2 2" },
};

static const golden normalizations[] = {
  { "the biased variance", "layer_norm x=f32/1x4 eps=0 mean=? rstd=?", "-2 2 -2 2", "-1 1 -1 1 | 0 | 0.5" },
  { "scale, then shift", "layer_norm x=f32/1x2 scale=f32/1x2 shift=f32/1x2 eps=0", "1 3 | 10 100 | 5 7", "-5 107" },
  { "eps is in the variance; a constant row gives 0", "layer_norm x=f32/1x2 eps=0.25 rstd=?", "2 2", "0 0 | 2" },
  { "NaN stays in its row", "layer_norm x=f32/2x2 eps=1", "nan 1 2 2", "nan nan 0 0" },
  { "several dims, a scale for the others", "layer_norm x=f32/2x1x2 axis=1,2 scale=f32/2x1x1 eps=0", "1 3 5 7 | 10 100", "-10 10 -100 100" },
  { "RMS takes no mean away", "rms_norm x=f32/1x2 eps=0 rstd=?", "2 -2", "1 -1 | 0.5" },
  { "running statistics take the unbiased variance",
    "batch_norm x=f32/2x1 running_mean=f32/1x1 running_var=f32/1x1 new_mean=f32/1x1 new_var=f32/1x1 eps=0 momentum=0.5", "1 3 | 0 | 0",
    "-1 1 | 1 | 1" },
  { "but of one element its own, 0", "batch_norm x=f32/1x1 running_var=f32/1x1 new_var=f32/1x1 eps=1 momentum=0.5", "3 | 8", "0 | 4" },
  { "given statistics", "batch_norm_inference x=f32/1x2 mean=f32/1x2 var=f32/1x2 eps=0", "5 6 | 1 2 | 4 16", "2 1" },
  { "gradients, by statistics as they are given", "layer_norm_backward dy=f32/1x2 x=f32/1x2 mean=f32/1x1 rstd=f32/1x1 dscale=f32/1x2 dshift=f32/1x2",
    "1 0 | 1 3 | 2 | 2", "-3 3 | -2 0 | 1 0" },
};

/* Philox's published answer to counter 0 and key 0 is 6627e8d5 e169c58d bc57ac4c 9b00dbd8. */
static const golden randoms[] = {
  { "the upper 24 bits of Philox's words", "rng_uniform seed=0 y=f32/4", "", "0x6627e8p-24 0xe169c5p-24 0xbc57acp-24 0x9b00dbp-24" },
  { "of its least bit too", "rng_uniform seed=0 y=f64/4 min=-0.5 max=0.5", "", "-0x19d818p-24 0x6169c5p-24 0x3c57acp-24 0x1b00dbp-24" },
  { "a range, rounded once", "rng_uniform seed=0 y=bf16/2 max=2", "", "0x1.98p-1 0x1.c2p0" },
  { "elements are counted row-major", "rng_uniform seed=0 y=f32/2x2/t", "", "0x6627e8p-24 0xe169c5p-24 0xbc57acp-24 0x9b00dbp-24" },
  { "a word below 2^32 p", "rng_bernoulli seed=0 y=i8/4 p=0.625", "", "1 0 0 1" },
  { "p 0 and 1 are certain", "rng_bernoulli seed=0 y=f32/4 p=1", "", "1 1 1 1" },
  { "what is below is dropped, the rest scaled", "dropout x=f32/4 seed=0 p=0.5 mask=?", "1 2 3 4", "0 4 6 8 | 14" },
  { "what is dropped is 0, whatever it was; NaN goes through where it is kept", "dropout x=f32/4 seed=0 p=0.5", "nan nan inf -inf", "0 nan inf -inf" },
  { "p 1 drops all, and scales nothing", "dropout x=f32/4 seed=0 p=1 mask=?", "1 inf nan 4", "0 0 0 0 | 0" },
  { "a gradient by the mask", "dropout_backward dy=f32/9 mask=u8/2 p=0.75", "1 2 3 4 5 6 7 8 9 | 129 255", "4 0 0 0 0 0 0 32 36" },
  { "or by the same words", "dropout_backward dy=f32/4 seed=0 p=0.5", "1 2 3 4", "0 4 6 8" },
  { "a key on the device", "dropout x=f32/4 seed=i64 offset=i64 p=0.5", "1 2 3 4 | 0 | 0", "0 4 6 8" },
};

static const golden quantizations[] = {
  { "quotients to nearest even, then the zero point, then saturation", "quantize x=f32/8 scale=f32 zero_point=i8 y=i8/8",
    "1 3 5 -1 -3 1000 -1000 nan | 2 | 10", "10 12 12 10 8 127 -128 10" },
  { "u8 from below", "quantize x=f32/4 scale=f32 zero_point=u8 y=u8/4", "-100 100 -300 300 | 1 | 128", "28 228 0 255" },
  { "e4m3 saturates, infinities too, and keeps NaN and the sign of 0", "quantize x=f32/6 scale=f32 y=e4m3/6 amax=?",
    "-896 9 inf nan -0 34 | 2", "-448 4.5 448 nan -0 16 | nan" },
  { "e5m2", "quantize x=f32/4 scale=f32 y=e5m2/4 amax=?", "-1e9 9 11 0 | 1", "-57344 8 12 0 | 1e9" },
  { "a scale for each row", "quantize x=f32/2x2 scale=f32/2x1 y=i8/2x2 amax=?", "4 -8 4 -6 | 4 2", "1 -2 2 -3 | 8 6" },
  { "for each column", "quantize x=f32/2x2 scale=f32/1x2 y=i8/2x2 amax=?", "4 -8 4 -6 | 4 2", "1 -4 1 -3 | 4 8" },
  { "for blocks, the last one shorter", "quantize x=f32/1x5 scale=e8m0/1x3 y=i8/1x5 block=0,2 amax=?", "8 8 8 8 8 | 1 2 4", "8 8 4 4 2 | 8 8 8" },
  { "the extreme of nothing is 0", "quantize x=f32/0x2 scale=f32/1x1 y=i8/0x2 amax=?", " | 3", " | 0" },
  { "back", "dequantize x=i8/3 scale=f32 zero_point=i8", "-128 0 127 | 0.5 | 127", "-127.5 -63.5 0" },
  { "by powers of two", "dequantize x=e4m3/2x2 scale=e8m0/2x1", "448 -1 nan 3 | 0.5 4", "224 -0.5 nan 12" },
  { "no scale is NaN throughout", "dequantize x=i8/2x1 scale=e8m0/2x1", "0 3 | nan 1", "nan 3" },
  { "scales by the largest", "quantize_dynamic x=f32/1x3 y=i8/1x3 amax=?", "127 -254 1", "64 -127 0 | 2 | 254" },
  { "e4m3's largest is 448, e5m2's 57344", "quantize_dynamic x=f32/1x2 y=e4m3/1x2", "896 -7", "448 -3.5 | 2" },
  { "a block of zeros has scale 1", "quantize_dynamic x=f32/2x2 y=e4m3/2x2 block=1,0 amax=?", "0 0 224 0", "0 0 448 0 | 1 0.5 | 0 224" },
  { "MX: the power of two below amax, less e4m3's 8", "quantize_dynamic x=f32/1x4 y=e4m3/1x4 scale=e8m0/1x2 block=1,2",
    "300 -600 1.75 1", "144 -288 448 256 | 2 0x1p-8" },
  { "which may be too small for amax itself", "quantize_dynamic x=f32/1x2 y=e4m3/1x2 scale=e8m0/1x1", "511 1", "448 1 | 1" },
  { "e5m2's 15, i8's 6", "quantize_dynamic x=f32/1x2 y=i8/1x2 scale=e8m0/1x1", "127.5 -3", "127 -3 | 1" },
  { "zeros have the least power", "quantize_dynamic x=f32/1x2 y=e4m3/1x2 scale=e8m0/1x1", "0 0", "0 0 | 0x1p-127" },
  { "what is no number spoils its block alone", "quantize_dynamic x=f32/2x2 y=e4m3/2x2 scale=e8m0/2x1 block=1,2", "inf 1 3 256", "nan nan 3 256 | nan 1" },
};

static const golden losses[] = {
  { "one class is certain", "cross_entropy x=f32/2x1 labels=i32/2x1 lse=?", "3 -4 | 0 0", "0 0 | 3 -4" },
  { "-Inf is no chance", "cross_entropy x=f32/2x2 labels=i32/2x1 lse=?", "5 -inf 5 -inf | 0 1", "0 inf | 5 5" },
  { "large logits do not overflow", "cross_entropy x=f32/1x2 labels=i32/1x1", "1000 -1000 | 1", "2000" },
  { "ignored rows are 0, whatever they hold", "cross_entropy x=f32/2x1 labels=i32/2x1 lse=? count=?", "nan 7 | -100 0", "0 0 | 0 7 | 1" },
  { "a label of no class reads 0", "cross_entropy x=f32/2x1 labels=i64/2x1", "3 4 | -1 1", "3 4" },
  { "smoothing takes from the label for all", "cross_entropy x=f32/1x2 labels=i32/1x1 smoothing=0.5", "1000 0 | 0", "250" },
  { "the mean is over rows that count", "cross_entropy x=f32/3x2 labels=i32/3x1 reduction=mean count=?", "100 0 100 0 nan 0 | 1 0 -100", "50 | 2" },
  { "the sum", "cross_entropy x=f32/2x2 labels=i32/2x1 reduction=sum", "100 0 0 200 | 1 0", "300" },
  { "the mean over nothing is NaN", "cross_entropy x=f32/1x2 labels=i32/1x1 reduction=mean count=?", "1 2 | -100", "nan | 0" },
  { "NaN stays in its row", "cross_entropy x=f32/2x2 labels=i32/2x1 lse=?", "nan 1 200 0 | 1 0", "nan 0 | nan 200" },
  { "a row of -Inf has lse -Inf", "cross_entropy x=f32/1x2 labels=i32/1x1 lse=?", "-inf -inf | 5", "-inf | -inf" },
  { "the gradient, by lse as it is given", "cross_entropy_backward dy=f32/2x1 x=f32/2x2 labels=i32/2x1 lse=f32/2x1", "2 1 | 3 -inf 0 0 | 1 -100 | 3 7", "2 -2 0 0" },
  { "smoothing", "cross_entropy_backward dy=f32/1x1 x=f32/1x2 labels=i32/1x1 lse=f32/1x1 smoothing=0.5", "4 | 0 -inf | 0 | 0", "1 -1" },
  { "ctc: one frame spells its label; three classes alike", "ctc_loss x=f64/1x1x1 labels=i32/1x0 x_lengths=i32/1 label_lengths=i32/1 lse=?", "3 | | 1 | 0", "0 | 3" },
  { "ctc: certain frames spell", "ctc_loss x=f32/3x1x3 labels=i32/1x2 x_lengths=i32/1 label_lengths=i32/1", "-inf 0 -inf 0 -inf -inf -inf -inf 7 | 1 2 | 3 | 2", "0" },
  { "ctc: repeats want a blank between", "ctc_loss x=f32/3x2x2 labels=i32/2x2 x_lengths=i32/2 label_lengths=i32/2",
    "-inf 0 -inf 0 -inf 0 0 -inf -inf 0 -inf 0 | 1 1 1 1 | 3 3 | 2 2", "inf 0" },
  { "ctc: what cannot be spelt is infinite, or 0", "ctc_loss x=f32/1x2x2 labels=i32/2x2 x_lengths=i32/2 label_lengths=i32/2 zero_infinity=1",
    "0 -inf nan 0 | 1 1 1 1 | 1 1 | 2 1", "0 nan" },
  { "ctc: no frames spell no labels", "ctc_loss x=f32/2x3x2 labels=i64/3x1 x_lengths=i32/3 label_lengths=i64/3 lse=?",
    "nan nan nan nan 5 -inf nan nan nan nan nan nan | 1 1 1 | 0 -1 1 | 0 1 0", "0 inf 0 | 0 0 5 0 0 0" },
  { "ctc: lengths end at T and S; no path spells blank", "ctc_loss x=f32/2x2x2 labels=i32/2x1 x_lengths=i32/2 label_lengths=i32/2 reduction=sum zero_infinity=1",
    "-inf 9 0 0 3 -inf 0 0 | 1 0 | 9 2 | 9 1", "0" },
  { "ctc: a label of no class reads 0", "ctc_loss x=f32/1x1x2 labels=i32/1x1 x_lengths=i32/1 label_lengths=i32/1", "1000 0 | 5 | 1 | 1", "1000" },
  { "ctc: the mean is over samples", "ctc_loss x=f32/1x4x2 labels=i32/4x1 x_lengths=i32/4 label_lengths=i32/4 reduction=mean",
    "100 0 100 0 100 0 300 0 | 1 1 1 1 | 1 1 1 1 | 1 1 0 1", "125" },
  { "ctc: its gradient, by lse as it is given", "ctc_loss_backward dy=f32/2 x=f32/2x2x2 labels=i32/2x1 x_lengths=i32/2 label_lengths=i32/2 lse=f32/2x2x1",
    "2 3 | 0 0 0 0 -inf 0 9 9 | 1 1 | 2 1 | 1 1 | 0 0 0 7", "1 1 3 0 0 0 0 0" },
  { "ctc: 0 where nothing spells", "ctc_loss_backward dy=f32/1 x=f32/1x1x2 labels=i32/1x2 x_lengths=i32/1 label_lengths=i32/1 lse=f32/1x1x1", "2 | 0 0 | 1 1 | 1 | 2 | 0", "0 0" },
  { "of a mean", "cross_entropy_backward dy=f32/1x1 x=f32/1x2 labels=i32/1x1 lse=f32/1x1 count=f32/1x1 reduction=mean", "4 | 0 -inf | 1 | 0 | 2", "2 -2" },
};

static const golden steps[] = {
  { "sgd goes against the gradient", "sgd params=[f32/2,f32/1] grads=[f32/2,f32/1] step=4 rate=0.5", "8 8 | 3 | 2 -4 | 1", "5 | 7 10 | 2.5" },
  { "decay and scale", "sgd params=[f32/1] grads=[f32/1] step=0 rate=1 scale=4 decay=0.25", "8 | 16", "1 | 2" },
  { "momentum", "sgd params=[f32/1] grads=[f32/1] velocity=[f32/1] new_velocity=? step=0 rate=0.5 momentum=0.5", "8 | 3 | 2", "1 | 6 | 4" },
  { "and a look ahead", "sgd params=[f32/1] grads=[f32/1] velocity=[f32/1] new_velocity=? step=0 rate=0.5 momentum=0.5 nesterov=1", "8 | 3 | 2", "1 | 5.5 | 4" },
  { "a step that is skipped reads no gradient and does not count", "sgd params=[f32/2] grads=[f32/2] step=i64 rate=1 found=f32 copy=[f16/2]", "1 2 | nan inf | 6 | 1", "6 | 1 2 | 1 2" },
  { "adam's first step is rate in the gradient's direction", "adam params=[f32/2] grads=[f32/2] m=[f32/2] v=[f32/2] step=0 rate=2 eps=0 beta1=0.5 beta2=0.75",
    "8 8 | 4 -16 | 0 0 | 0 0", "1 | 6 10 | 2 -8 | 4 64" },
  { "the second one, with both means unbiased", "adam params=[f32/1] grads=[f32/1] m=[f32/1] v=[f32/1] step=i64 rate=1 eps=0 beta1=0.5 beta2=0.75",
    "8 | 2 | 4 | 8 | 1", "2 | 7 | 3 | 7" },
  { "adam's decay is part of the gradient", "adam params=[f32/1] grads=[f32/1] m=[f32/1] v=[f32/1] step=0 rate=2 eps=0 decay=0.5 beta1=0.5 beta2=0.75", "8 | 4 | 0 | 0", "1 | 6 | 4 | 16" },
  { "adamw's is beside it", "adamw params=[f32/1] grads=[f32/1] m=[f32/1] v=[f32/1] step=0 rate=2 eps=0 decay=0.5 beta1=0.5 beta2=0.75", "8 | 4 | 0 | 0", "1 | -2 | 2 | 4" },
  { "the norm is of the whole list, unscaled", "global_norm x=[f32/2,f32/1] scale=2 limit=1.625 divisor=?", "3 4 | 12", "6.5 | 8" },
  { "a short one is let be", "global_norm x=[f32/2] scale=2 limit=10 divisor=?", "3 4", "2.5 | 2" },
  { "unscaled, all well", "amp_unscale grads=[f16/2,f32/1] scale=4 new_grads=?", "8 65504 | 1", "0 | 2 16376 | 0.25" },
  { "one infinity is found", "amp_unscale grads=[f16/2,f32/1] scale=4", "8 -inf | 1", "1" },
  { "and one NaN", "amp_unscale grads=[f32/1,f32/2] scale=4", "1 | 0 nan", "1" },
  { "an overflow halves the scale", "amp_update scale=f32 good=i64 found=f32", "1024 | 7 | 1", "512 | 0" },
  { "a good step is counted", "amp_update scale=f32 good=i64 found=f32 interval=9", "1024 | 7 | 0", "1024 | 8" },
  { "enough of them double it", "amp_update scale=f32 good=i64 found=f32 interval=8", "1024 | 7 | 0", "2048 | 0" },
};

static const golden pools[] = {
  { "the largest, and where in the plane", "pool_max x=f32/1x1x2x3 window=2 stride=1 indices=i32/1x1x1x2", "1 2 3 4 6 5", "6 6 | 4 4" },
  { "ties go to the first in row-major order", "pool_max x=f32/1x1x2x2 window=2 indices=i64/1x1x1x1", "1 7 7 7", "7 | 1" },
  { "u8 indices count taps in the window", "pool_max x=f32/1x1x4 window=2 stride=2 indices=u8/1x1x2", "1 2 9 3", "2 9 | 1 0" },
  { "u8 indices count padded taps too", "pool_max x=f32/1x1x2 window=3 stride=1 pad=1 indices=u8/1x1x2", "5 4", "5 5 | 1 0" },
  { "NaN wins, the first NaN", "pool_max x=f32/1x1x4 window=4 indices=i32/1x1x1", "9 nan inf nan", "nan | 1" },
  { "all -Inf: the first tap inside", "pool_max x=f32/1x1x2 window=2 indices=i32/1x1x1", "-inf -inf", "-inf | 0" },
  { "a window wholly in padding: -Inf and -1", "pool_max x=f32/1x1x1 window=2 stride=1 pad=2 indices=i32/1x1x4", "5", "-inf 5 5 -inf | -1 0 0 -1" },
  { "a window wholly in padding: 255 in u8", "pool_max x=f32/1x1x1 window=2 stride=1 pad=2 indices=u8/1x1x4", "5", "-inf 5 5 -inf | 255 1 0 255" },
  { "negative maxima beside padding", "pool_max x=f32/1x1x2 window=2 stride=1 pad=1", "-5 -4", "-5 -4 -4" },
  { "global pooling", "pool_max x=f32/1x2x2x2", "1 2 3 4 -1 -2 -3 -4", "4 -1" },
  { "dilation", "pool_max x=f32/1x1x5 window=2 stride=1 dilation=3", "1 9 2 3 4", "3 9" },
  { "ceil_mode off", "pool_max x=f32/1x1x5 window=2", "1 2 3 4 5", "2 4" },
  { "ceil_mode on", "pool_max x=f32/1x1x5 window=2 ceil_mode=1", "1 2 3 4 5", "2 4 5" },
  { "ceil_mode never starts a window beyond the input", "pool_max x=f32/1x1x3 window=2 stride=3 ceil_mode=1", "1 2 3", "2" },
  { "ceil_mode counts left padding as input", "pool_max x=f32/1x1x2 window=1 stride=2 pad=1 ceil_mode=1", "1 2", "-inf 2" },
  { "average, padding counted", "pool_average x=f32/1x1x2 window=2 stride=1 pad=1", "4 8", "2 6 4" },
  { "average, padding not counted", "pool_average x=f32/1x1x2 window=2 stride=1 pad=1 include_pad=0", "4 8", "4 6 8" },
  { "the overhang is never counted", "pool_average x=f32/1x1x5 window=2 ceil_mode=1", "2 4 6 8 5", "3 7 5" },
  { "the declared padding is, beside the overhang", "pool_average x=f32/1x1x4 window=4 stride=3 pad=1 ceil_mode=1", "1 2 3 6", "1.5 3" },
  { "a window wholly in padding averages to 0", "pool_average x=f32/1x1x1 window=2 stride=1 pad=2", "5", "0 2.5 2.5 0" },
  { "the same, padding not counted", "pool_average x=f32/1x1x1 window=2 stride=1 pad=2 include_pad=0", "5", "0 5 5 0" },
  { "average of NaN", "pool_average x=f32/1x1x4 window=2", "nan 1 inf 1", "nan inf" },
  { "gradient of the maximum by indices", "pool_max_backward dy=f32/1x1x2 indices=i32/1x1x2 dx=f32/1x1x3 window=2 stride=1", "1 10 | 1 1", "0 11 0" },
  { "gradient of the maximum by u8 indices", "pool_max_backward dy=f32/1x1x2 indices=u8/1x1x2 dx=f32/1x1x3 window=2 stride=1", "1 10 | 1 0", "0 11 0" },
  { "gradient of the maximum by x", "pool_max_backward dy=f32/1x1x2 x=f32/1x1x3 window=2 stride=1", "1 10 | 5 5 4", "1 10 0" },
  { "an index out of range adds nowhere", "pool_max_backward dy=f32/1x1x2 indices=i32/1x1x2 dx=f32/1x1x4 window=2", "1 10 | -1 99", "0 0 0 0" },
  { "u8 255 adds nowhere", "pool_max_backward dy=f32/1x1x2 indices=u8/1x1x2 dx=f32/1x1x4 window=2", "1 10 | 255 1", "0 0 0 10" },
  { "gradient of the average", "pool_average_backward dy=f32/1x1x3 dx=f32/1x1x2 window=2 stride=1 pad=1", "2 4 8", "3 6" },
  { "gradient of the average, padding not counted", "pool_average_backward dy=f32/1x1x3 dx=f32/1x1x2 window=2 stride=1 pad=1 include_pad=0", "2 4 8", "4 10" },
};

static const golden shared_pools[] = {
  { "adaptive windows share a place where they do not divide x", "pool_adaptive_average x=f32/1x1x5 size=2", "1 2 3 4 5", "2 4" },
  { "more windows than places", "pool_adaptive_average x=f32/1x1x2 size=3", "1 3", "1 2 3" },
  { "adaptive maximum and its place", "pool_adaptive_max x=f32/1x1x2x3 size=1,2 indices=?", "1 7 7 2 0 9", "7 9 | 1 5" },
  { "adaptive maximum: NaN wins", "pool_adaptive_max x=f32/1x1x3 size=1 indices=?", "1 nan 3", "nan | 1" },
  { "the mean's gradient", "pool_adaptive_average_backward dy=f32/1x1x2 dx=f32/1x1x3", "2 4", "1 3 2" },
  { "the maximum's gradient", "pool_adaptive_max_backward dy=f32/1x1x2 indices=i32/1x1x2 dx=f32/1x1x3", "2 4 | 1 1", "0 6 0" },
  { "an index outside its window adds nowhere", "pool_adaptive_max_backward dy=f32/1x1x2 indices=i32/1x1x2 dx=f32/1x1x4", "2 4 | 3 9", "0 0 0 0" },
  { "lp, p 2", "pool_lp x=f32/1x1x4 window=2", "3 -4 0 0", "5 0" },
  { "lp, p 1", "pool_lp x=f32/1x1x4 window=2 p=1", "3 -4 0 -7", "7 7" },
  { "lp keeps what a power would lose", "pool_lp x=f32/1x1x4 window=2", "3e30 -4e30 0 1e-30", "5e30 1e-30" },
  { "lp's gradient", "pool_lp_backward dy=f32/1x1x1 x=f32/1x1x2 y=f32/1x1x1 window=2", "10 | 3 -4 | 5", "6 -8" },
  { "lp's gradient where the norm is 0", "pool_lp_backward dy=f32/1x1x1 x=f32/1x1x2 y=f32/1x1x1 window=2", "10 | 0 0 | 0", "0 0" },
};

static const golden resamplings[] = {
  { "nearest: the place that the middle falls in", "resample x=f32/1x1x2 size=5", "1 2", "1 1 2 2 2" },
  { "nearest, asymmetric", "resample x=f32/1x1x3 size=2 grid=asymmetric", "1 2 3", "1 2" },
  { "nearest, half pixel", "resample x=f32/1x1x3 size=2", "1 2 3", "1 3" },
  { "linear, half pixel: edges repeat", "resample x=f32/1x1x2 size=4 mode=linear", "1 3", "1 1.5 2.5 3" },
  { "linear, corners aligned", "resample x=f32/1x1x2 size=5 mode=linear grid=align_corners", "1 3", "1 1.5 2 2.5 3" },
  { "linear, asymmetric", "resample x=f32/1x1x2 size=4 mode=linear grid=asymmetric", "1 3", "1 2 3 3" },
  { "one point of aligned corners is the first", "resample x=f32/1x1x3 size=1 mode=linear grid=align_corners", "1 2 3", "1" },
  { "bilinear", "resample x=f32/1x1x2x2 size=3,3 mode=linear grid=align_corners", "1 2 3 4", "1 1.5 2 2 2.5 3 3 3.5 4" },
  { "cubic, a = -3/4", "resample x=f32/1x1x4 size=7 mode=cubic grid=align_corners", "0 0 32 0", "0 -3 0 19 32 19 0" },
  { "a tap of weight 0 is not read", "resample x=f32/1x1x2 size=2 mode=linear grid=align_corners", "1 inf", "1 inf" },
  { "the gradient of nearest", "resample_backward dy=f32/1x1x5 dx=f32/1x1x2", "1 2 4 8 16", "3 28" },
  { "the gradient of linear", "resample_backward dy=f32/1x1x4 dx=f32/1x1x2 mode=linear", "4 8 16 32", "14 46" },
};

static const golden neighbours[] = {
  { "across: a window of three channels, cut at the ends", "lrn x=f16/1x3x1 size=3 alpha=3 beta=1", "1 2 3", "0.16666666 0.13333334 0.21428572" },
  { "an even window reaches ahead", "lrn x=f16/1x3 size=2 alpha=2 beta=1 k=0", "1 2 3", "0.2 0.15384616 0.33333334" },
  { "within: squares of a plane", "lrn x=f16/1x1x2x2 size=3 alpha=9 beta=0.5 k=6 region=within", "1 2 3 4", "0.16666667 0.33333334 0.5 0.6666667" },
  { "alpha is divided by all of the window", "lrn x=f16/1x1x2 size=5 alpha=15 beta=1 k=1", "1 2", "0.25 0.15384616" },
  { "beta of 0 divides by nothing", "lrn x=f16/1x2 beta=0 k=0", "0 7", "0 7" },
  { "means are subtracted at the window's middle, in the sum alone", "lrn x=f16/1x1x3 means=f16/1x1x3 size=3 alpha=3 beta=1 region=within", "1 2 4 | 1 3 2", "0.5 0.2857143 0.8" },
  { "beyond the edge nothing is off the mean", "lrn x=f16/1x1x1x2 means=f16/1x1x1x2 size=3 alpha=9 beta=1 region=within", "5 6 | 5 5", "2.5 3" },
  { "the gradient with means", "lrn_backward dy=f16/1x2 x=f16/1x2 means=f16/1x2 size=3 alpha=3 beta=1 k=2 dmeans=?", "9 49 | 1 2 | 2 3", "13 11 | -2 -12" },
  { "the gradient: one that comes through a neighbour's sum", "lrn_backward dy=f16/1x2 x=f16/1x2 size=3 alpha=3 beta=1 k=2", "49 0 | 1 2", "5 -4" },
};

static const golden samplings[] = {
  { "the identity, middles of places", "affine_grid theta=f32/1x2x3 grid=f32/1x1x4x2", "1 0 0 0 1 0", "-0.75 0 -0.25 0 0.25 0 0.75 0" },
  { "the identity, corners aligned", "affine_grid theta=f32/1x2x3 grid=f32/1x2x3x2 align_corners=1", "1 0 0 0 1 0", "-1 -1 0 -1 1 -1 -1 1 0 1 1 1" },
  { "a turn and a shift; one place is the middle", "affine_grid theta=f32/1x2x3 grid=f32/1x1x2x2 align_corners=1", "0 1 0.5 1 0 2", "0.5 1 0.5 3" },
  { "three dims: x along the last", "affine_grid theta=f32/1x3x4 grid=f32/1x2x1x1x3", "1 0 0 0 0 1 0 0 0 0 1 0", "0 0 -0.5 0 0 0.5" },
  { "theta's gradient", "affine_grid_backward dy=f32/1x1x2x2", "1 10 2 20", "0.5 0 3 5 0 30" },
  { "the first coordinate lies along W", "grid_sample x=f32/1x1x2x2 grid=f32/1x1x2x2", "1 2 3 4 | 0.5 -0.5 -0.5 0.5", "2 3" },
  { "linear, outer edges", "grid_sample x=f32/1x1x1x2 grid=f32/1x1x4x2", "2 6 | -1 0 -0.5 0 0 0 1 0", "1 2 4 3" },
  { "linear, corners aligned", "grid_sample x=f32/1x1x1x2 grid=f32/1x1x4x2 align_corners=1", "2 6 | -1 0 -0.5 0 0 0 1 0", "2 3 4 6" },
  { "border", "grid_sample x=f32/1x1x1x2 grid=f32/1x1x4x2 padding=border", "2 6 | -1 0 -9 0 1 0 inf 0", "2 2 6 6" },
  { "reflection at the outer edges", "grid_sample x=f32/1x1x1x2 grid=f32/1x1x4x2 padding=reflection", "2 6 | -1.5 0 1.5 0 2 0 3 0", "2 6 4 2" },
  { "reflection at the corners", "grid_sample x=f32/1x1x1x3 grid=f32/1x1x3x2 padding=reflection align_corners=1", "2 6 9 | -1.5 0 1.5 0 2.5 0", "4 7.5 4" },
  { "nearest: halves to the even place", "grid_sample x=f32/1x1x1x4 grid=f32/1x1x4x2 mode=nearest", "1 2 3 4 | -0.5 0 0 0 0.5 0 2 0", "1 3 3 0" },
  { "a tap of weight 0 is not read", "grid_sample x=f32/1x1x1x2 grid=f32/1x1x1x2", "7 inf | -0.5 0", "7" },
  { "a point that is NaN; one far outside", "grid_sample x=f32/1x1x1x2 grid=f32/1x1x2x2", "7 7 | nan 0 inf 0", "nan 0" },
  { "trilinear", "grid_sample x=f32/1x1x2x2x2 grid=f32/1x1x1x2x3", "1 2 3 4 5 6 7 8 | 0 0 0 0.5 0 -0.5", "4.5 3" },
  { "the gradient by x", "grid_sample_backward_data dy=f32/1x1x1x3 grid=f32/1x1x3x2 dx=f32/1x1x1x2", "4 8 16 | -0.5 0 0 0 0.75 0", "8 16" },
  { "the gradient by x adds up at the border", "grid_sample_backward_data dy=f32/1x1x1x2 grid=f32/1x1x2x2 dx=f32/1x1x1x2 padding=border", "1 2 | 5 0 7 0", "0 3" },
  { "the gradient by the points", "grid_sample_backward_grid dy=f32/1x2x1x1 x=f32/1x2x2x2 grid=f32/1x1x1x2", "1 10 | 1 2 4 8 0 1 0 1 | 0 0", "12.5 4.5" },
  { "none where a point is moved to the border", "grid_sample_backward_grid dy=f32/1x1x1x1 x=f32/1x1x1x2 grid=f32/1x1x1x2 padding=border", "1 | 1 2 | 3 0", "0 0" },
  { "reflected, it has the other sign", "grid_sample_backward_grid dy=f32/1x1x1x1 x=f32/1x1x1x2 grid=f32/1x1x1x2 padding=reflection", "1 | 1 2 | 2 0", "-1 0" },
};

static const golden reductions[] = {
  { "sum over nothing is 0", "reduce_sum x=f32/2x0 axis=1", "", "0 0" },
  { "mean over nothing is NaN", "reduce_mean x=f32/1x0 axis=1", "", "nan" },
  { "product over nothing is 1", "reduce_prod x=f32/1x0 axis=1", "", "1" },
  { "max over nothing is -Inf", "reduce_max x=f32/1x0 axis=1", "", "-inf" },
  { "min over nothing is Inf", "reduce_min x=f32/1x0 axis=1", "", "inf" },
  { "max over no i8 is the least", "reduce_max x=i8/1x0 axis=1", "", "-128" },
  { "min over no u8 is the largest", "reduce_min x=u8/1x0 axis=1", "", "255" },
  { "norms over nothing are 0", "reduce_norm1 x=f32/1x0 axis=1", "", "0" },
  { "norms over nothing are 0", "reduce_norm2 x=f32/1x0 axis=1", "", "0" },
  { "largest magnitude of nothing is 0", "reduce_amax x=f32/1x0 axis=1", "", "0" },
  { "argmax over nothing is -1", "argmax x=f32/1x0 axis=1 y=i32/1x1", "", "-1" },
  { "argmin over nothing is -1", "argmin x=f32/1x0 axis=1 y=i64/1x1", "", "-1" },
  { "no axis named: all dims", "reduce_sum x=f32/2x3", "1 2 3 4 5 6", "21" },
  { "some dims", "reduce_sum x=f32/2x2x2 axis=0,2", "1 2 3 4 5 6 7 8", "14 22" },
  { "mean", "reduce_mean x=f32/2x2 axis=1", "1 2 3 5", "1.5 4" },
  { "product", "reduce_prod x=f32/1x3 axis=1", "2 -3 4", "-24" },
  { "norm1", "reduce_norm1 x=f32/1x3 axis=1", "2 -3 4", "9" },
  { "norm2", "reduce_norm2 x=f32/1x2 axis=1", "3 -4", "5" },
  { "amax", "reduce_amax x=f32/1x3 axis=1", "2 -3 1", "3" },
  { "NaN wins in max, min and amax", "reduce_max x=f32/1x3 axis=1", "inf nan 1", "nan" },
  { "NaN wins in max, min and amax", "reduce_min x=f32/1x3 axis=1", "-inf nan 1", "nan" },
  { "NaN wins in max, min and amax", "reduce_amax x=f32/1x3 axis=1", "inf nan 1", "nan" },
  { "argmax: the first of equals, row-major", "argmax x=f32/2x2 y=i32/1x1", "1 7 7 2", "1" },
  { "argmin: the first of equals", "argmin x=f32/1x4 axis=1 y=i64/1x1", "5 2 2 2", "1" },
  { "argmax: the first NaN before any number", "argmax x=f32/1x4 axis=1 y=i32/1x1", "5 nan inf nan", "1" },
  { "argmin: the first NaN before any number", "argmin x=f32/1x4 axis=1 y=i32/1x1", "5 -inf nan nan", "2" },
  { "argmax of all -Inf is 0", "argmax x=f32/1x2 axis=1 y=i32/1x1", "-inf -inf", "0" },
  { "i8 sums wrap in i8", "reduce_sum x=i8/1x2 axis=1 y=i8/1x1", "100 100", "-56" },
  { "i8 sums in i32", "reduce_sum x=i8/1x2 axis=1 y=i32/1x1", "100 100", "200" },
  { "i8 products wrap", "reduce_prod x=i8/1x2 axis=1 y=i8/1x1", "16 16", "0" },
  { "i64 extremes keep every bit", "reduce_max x=i64/1x2 axis=1", "9007199254740993 9007199254740992", "9007199254740993" },
  { "f16 is summed in f32", "reduce_sum x=f16/1x4 axis=1", "2048 1 1 2", "2052" },
  { "f16 into f32", "reduce_sum x=f16/1x2 axis=1 y=f32/1x1", "60000 60000", "120000" },
  { "f16 squares do not overflow", "reduce_norm2 x=f16/1x2 axis=1", "3000 4000", "5000" },
};

static const golden transforms[] = {
  { "copy", "copy x=f32/2x2/t y=f32/2x2/2:1", "1 2 3 4", "1 2 3 4" },
  { "permute: y's dim i is x's dim perm[i]", "permute x=f32/1x2x3 perm=2,0,1", "1 2 3 4 5 6", "1 4 2 5 3 6" },
  { "slice", "slice x=f32/6 start=1 length=2 step=3", "0 1 2 3 4 5", "1 4" },
  { "slice, length 0: to the end", "slice x=f32/6 start=1 step=2", "0 1 2 3 4 5", "1 3 5" },
  { "pad", "pad x=f32/2 pad=1:2 value=9", "1 2", "9 1 2 9 9" },
  { "the padding converts as cast does", "pad x=i8/1 pad=1 value=2.5", "1", "2 1 2" },
  { "the padding saturates as cast does", "pad x=u8/1 pad=1:0 value=300", "1", "255 1" },
  { "concat", "concat x=[f32/2x1,f32/2x2] axis=1", "1 2 | 3 4 5 6", "1 3 4 2 5 6" },
  { "concat of three", "concat x=[f32/2,f32/3,f32/1] axis=0", "1 2 | 3 4 5 | 6", "1 2 3 4 5 6" },
  { "concat along the last by default", "concat x=[i8/1,i8/2]", "1 | 2 3", "1 2 3" },
  { "reflection does not repeat the edge", "pad x=f32/3 pad=2 mode=reflect", "1 2 3", "3 2 1 2 3 2 1" },
  { "replication does", "pad x=f32/3 pad=2:1 mode=replicate", "1 2 3", "1 1 1 2 3 3" },
  { "corners are of both dims", "pad x=f32/2x2 pad=1:0,0:1 mode=reflect", "1 2 3 4", "3 4 3 1 2 1 3 4 3" },
  { "gather takes rows; an index out of range reads as 0", "gather x=f32/3x2 indices=i32/4", "1 2 3 4 5 6 | 2 0 3 -1", "5 6 1 2 0 0 0 0" },
  { "gather along another axis", "gather x=f32/2x3 indices=i64/2x1 axis=1", "1 2 3 4 5 6 | 2 0", "3 1 6 4" },
};

static const golden selections[] = {
  { "scatter_add adds where indices meet, and nowhere out of range", "scatter_add dy=f32/4x1 indices=i32/4 dx=f32/3x1", "1 2 4 8 | 2 0 2 3", "2 0 5" },
  { "the gradient of reflection", "pad_backward dy=f32/6 pad=2:1 mode=reflect", "1 2 4 8 16 32", "4 42 17" },
  { "the gradient of replication", "pad_backward dy=f32/6 pad=2:1 mode=replicate", "1 2 4 8 16 32", "7 8 48" },
  { "the gradient of a constant", "pad_backward dy=f32/6 pad=2:1", "1 2 4 8 16 32", "4 8 16" },
  { "one_hot", "one_hot indices=i32/3 depth=2", "1 2 0", "0 1 0 0 1 0" },
  { "one_hot along the first dim", "one_hot indices=i32/3 depth=2 axis=0 on=3 off=1", "1 2 0", "1 1 3 3 1 1" },
  { "top_k: the first of equals first", "top_k x=f32/5 k=3 indices=?", "1 3 2 3 3", "3 3 3 | 1 3 4" },
  { "top_k: NaN is the largest", "top_k x=f32/4 k=3 indices=?", "inf nan 1 nan", "nan nan inf | 1 3 0" },
  { "top_k: NaN comes last of the smallest", "top_k x=f32/4 k=4 smallest=1 indices=?", "inf nan -1 nan", "-1 inf nan nan | 2 0 1 3" },
  { "top_k: zeros are equal whatever their sign", "top_k x=f32/3 k=3 indices=?", "-0 0 -0", "-0 0 -0 | 0 1 2" },
  { "top_k: integers beyond what a double tells apart", "top_k x=i64/2 k=1 indices=?", "9007199254740992 9007199254740993", "9007199254740993 | 1" },
  { "cumsum", "cumsum x=f32/4", "1 2 4 8", "1 3 7 15" },
  { "cumsum, exclusive", "cumsum x=f32/4 exclusive=1", "1 2 4 8", "0 1 3 7" },
  { "cumsum, reverse", "cumsum x=f32/4 reverse=1", "1 2 4 8", "15 14 12 8" },
  { "cumsum, both", "cumsum x=f32/4 reverse=1 exclusive=1", "1 2 4 8", "14 12 8 0" },
  { "cumsum of integers wraps in y's dtype", "cumsum x=i8/3", "100 100 1", "100 -56 -55" },
  { "or has room", "cumsum x=i8/3 y=i32/3", "100 100 1", "100 200 201" },
};

static const golden pointwise[] = {
  { "broadcast", "add a=f32/2x1 b=f32/1x2 y=f32/2x2", "1 2 | 10 20", "11 21 12 22" },
  { "a scalar", "mul a=f32/3 b=2", "1 2 3", "2 4 6" },
  { "a scalar becomes the computation's type first", "eq a=f32/2 b=0.1", "0.1 0.2", "1 0" },
  { "an f64 computation keeps its f64 scalar", "sub a=f64/1 b=1.00000000023283064365386962890625", "1", "-0x1p-32" },
  { "f16 and f32 mix", "add a=f16/1 b=f32/1 y=f32/1", "1 | 0x1p-20", "0x1.00001p0" },
  { "integers wrap: add", "add a=i8/2 b=i8/2", "127 -128 | 1 -1", "-128 127" },
  { "integers wrap: sub", "sub a=u8/2 b=u8/2", "0 5 | 1 3", "255 2" },
  { "integers wrap: mul", "mul a=i32/1 b=i32/1", "65536 | 65536", "0" },
  { "integers wrap: neg", "neg x=i8/2", "-128 5", "-128 -5" },
  { "integers wrap: abs", "abs x=i8/2", "-128 -5", "-128 5" },
  { "i64 keeps every bit", "add a=i64/1 b=i64/1", "9007199254740993 | 2", "9007199254740995" },
  { "an integer scalar", "mul a=i32/2 b=3", "5 -7", "15 -21" },
  { "min: NaN if either is", "min a=f32/4 b=f32/4", "1 nan 1 nan | 2 1 nan nan", "1 nan nan nan" },
  { "max: NaN if either is", "max a=f32/4 b=f32/4", "1 nan 1 nan | 2 1 nan nan", "2 nan nan nan" },
  { "relu: NaN stays", "relu x=f32/5", "-1 0 2 nan -inf", "0 0 2 nan 0" },
  { "clip: NaN stays", "clip x=f32/5 min=-1 max=1", "-5 0.5 5 nan inf", "-1 0.5 1 nan 1" },
  { "clip: max holds where min is above it", "clip x=f32/1 min=3 max=1", "2", "1" },
  { "comparisons with NaN are false", "lt a=f32/3 b=f32/3", "1 nan 1 | 2 1 nan", "1 0 0" },
  { "comparisons with NaN are false", "ge a=f32/3 b=f32/3", "1 nan nan | 1 1 nan", "1 0 0" },
  { "comparisons with NaN are false", "eq a=f32/3 b=f32/3", "1 nan nan | 1 1 nan", "1 0 0" },
  { "but ne", "ne a=f32/3 b=f32/3", "1 nan nan | 1 1 nan", "0 1 1" },
  { "comparisons with NaN are false", "le a=f32/4 b=f32/4", "1 2 nan 3 | 1 1 nan 4", "1 0 0 1" },
  { "comparisons with NaN are false", "gt a=f32/4 b=f32/4", "1 2 nan 3 | 1 1 nan 4", "0 1 0 0" },
  { "integers compare exactly: eq", "eq a=i64/2 b=i64/2", "9007199254740993 5 | 9007199254740992 5", "0 1" },
  { "integers compare exactly: ne", "ne a=i64/2 b=i64/2", "9007199254740993 5 | 9007199254740992 5", "1 0" },
  { "integers compare exactly: lt", "lt a=i64/3 b=i64/3", "9007199254740992 5 -1 | 9007199254740993 5 -2", "1 0 0" },
  { "integers compare exactly: le", "le a=i64/3 b=i64/3", "9007199254740993 5 -2 | 9007199254740992 5 -1", "0 1 1" },
  { "integers compare exactly: gt", "gt a=i64/3 b=i64/3", "9007199254740993 5 -2 | 9007199254740992 5 -1", "1 0 0" },
  { "integers compare exactly: ge", "ge a=i64/3 b=i64/3", "9007199254740992 5 -1 | 9007199254740993 5 -2", "0 1 1" },
  { "u8 is not signed", "max a=u8/2 b=u8/2", "200 3 | 100 4", "200 4" },
  { "integers: min", "min a=i32/2 b=i32/2", "-5 7 | 3 2", "-5 2" },
  { "logic", "logical_and a=bool/4 b=bool/4", "0 0 1 1 | 0 1 0 1", "0 0 0 1" },
  { "logic", "logical_or a=bool/4 b=bool/4", "0 0 1 1 | 0 1 0 1", "0 1 1 1" },
  { "logic", "logical_not x=bool/2", "0 1", "1 0" },
  { "arithmetic", "div a=f32/4 b=f32/4", "1 -1 0 6 | 0 0 0 4", "inf -inf nan 1.5" },
  { "arithmetic", "sub a=f32/2 b=f32/2", "inf 5 | inf 7", "nan -2" },
  { "arithmetic", "neg x=f32/3", "1 -inf nan", "-1 inf nan" },
  { "arithmetic", "abs x=f32/3", "-1.5 -inf nan", "1.5 inf nan" },
  { "select does not look at the other", "select c=bool/2 a=f32/2 b=f32/2", "1 0 | 5 nan | nan 7", "5 7" },
  { "sign of 0 is 0, of NaN NaN", "sign x=f32/5", "-3 0 4 nan -inf", "-1 0 1 nan -1" },
  { "sign of integers", "sign x=i32/3", "-3 0 4", "-1 0 1" },
  { "round: ties to even", "round x=f32/6", "0.5 1.5 2.5 -0.5 -1.5 2.4", "0 2 2 0 -2 2" },
  { "floor and ceil", "floor x=f32/3", "1.5 -1.5 inf", "1 -2 inf" },
  { "floor and ceil", "ceil x=f32/3", "1.5 -1.5 -inf", "2 -1 -inf" },
  { "pow as C's pow", "pow a=f32/5 b=f32/5", "nan 1 -8 0 2 | 0 nan 2 -1 -1", "1 1 64 inf 0.5" },
  { "roots and reciprocals", "sqrt x=f32/3", "4 0 -1", "2 0 nan" },
  { "roots and reciprocals", "reciprocal x=f32/3", "4 0 -inf", "0.25 inf 0" },
  { "exp and log at the edges", "exp x=f32/4", "-inf 0 inf nan", "0 1 inf nan" },
  { "exp and log at the edges", "log x=f32/5", "0 1 inf -1 nan", "-inf 0 inf nan nan" },
  { "leaky_relu", "leaky_relu x=f32/3 slope=0.25", "-4 4 nan", "-1 4 nan" },
  { "elu", "elu x=f32/3 alpha=2", "-inf 0 3", "-2 0 3" },
  { "sigmoid and tanh at the edges", "sigmoid x=f32/4", "-inf 0 inf nan", "0 0.5 1 nan" },
  { "sigmoid and tanh at the edges", "tanh x=f32/4", "-inf 0 inf nan", "-1 0 1 nan" },
  { "softplus neither overflows nor vanishes", "softplus x=f32/4", "1e30 -1e30 inf nan", "1e30 0 inf nan" },
  { "softplus with beta", "softplus x=f32/2 beta=2", "1000 -1000", "1000 0" },
  { "silu with beta", "silu x=f32/3 beta=3", "0 1000 -1000", "0 1000 0" },
  { "gelu far out", "gelu x=f32/4", "0 100 -100 nan", "0 100 0 nan" },
  { "gelu_tanh far out", "gelu_tanh x=f32/4", "0 100 -100 nan", "0 100 0 nan" },
  { "mish far out", "mish x=f32/4", "0 100 -1000 nan", "0 100 0 nan" },
  { "hardswish", "hardswish x=f32/6", "-4 -3 0 3 4 1.5", "0 0 0 3 4 1.125" },
  { "relu'(0) = 0", "relu_backward dy=f32/3 x=f32/3", "5 6 7 | -1 0 1", "0 0 7" },
  { "leaky_relu'(0) is the slope", "leaky_relu_backward dy=f32/3 x=f32/3 slope=0.5", "4 4 4 | -1 0 1", "2 2 4" },
  { "elu'(0) = alpha", "elu_backward dy=f32/2 x=f32/2 alpha=2", "3 3 | 0 1", "6 3" },
  { "clip' is 0 at its ends", "clip_backward dy=f32/5 x=f32/5 min=0 max=1", "1 2 3 4 5 | -1 0 0.5 1 2", "0 0 3 0 0" },
  { "hardswish' at its kinks", "hardswish_backward dy=f32/4 x=f32/4", "2 2 2 2 | -3 3 0 1.5", "0 2 1 2" },
  { "sigmoid'(0)", "sigmoid_backward dy=f32/1 x=f32/1", "8 | 0", "2" },
  { "tanh'(0)", "tanh_backward dy=f32/2 x=f32/2", "8 8 | 0 inf", "8 0" },
  { "silu'(0)", "silu_backward dy=f32/1 x=f32/1", "8 | 0", "4" },
  { "softplus'", "softplus_backward dy=f32/3 x=f32/3", "8 8 8 | 0 inf -inf", "4 8 0" },
  { "gelu'(0)", "gelu_backward dy=f32/1 x=f32/1", "8 | 0", "4" },
  { "gelu_tanh'(0)", "gelu_tanh_backward dy=f32/1 x=f32/1", "8 | 0", "4" },
  { "in place", "add a=f32/3 b=1 y=a", "1 2 3", "2 3 4" },
};

/* To 17 digits (mpmath at 60), for the oracle alone: an engine's own error is quern-conform's to bound. */
static const golden functions[] = {
  { "exp", "exp x=f64/3", "-1.5 0.75 10",
    "0.22313016014842982 2.117000016612675 22026.465794806718" },
  { "log", "log x=f64/3", "0.3 1.25 1000",
    "-1.2039728043259361 0.22314355131420976 6.907755278982137" },
  { "sqrt", "sqrt x=f64/2", "2 0.1",
    "1.4142135623730951 0.31622776601683794" },
  { "rsqrt", "rsqrt x=f64/2", "2 0.1",
    "0.7071067811865476 3.162277660168379" },
  { "reciprocal", "reciprocal x=f64/2", "3 -7",
    "0.3333333333333333 -0.14285714285714285" },
  { "erf", "erf x=f64/3", "-0.3 0.5 2",
    "-0.3286267594591274 0.5204998778130465 0.9953222650189527" },
  { "sin", "sin x=f64/3", "-1 0.5 100",
    "-0.8414709848078965 0.479425538604203 -0.5063656411097588" },
  { "cos", "cos x=f64/3", "-1 0.5 100",
    "0.5403023058681398 0.8775825618903728 0.8623188722876839" },
  { "gelu", "gelu x=f64/4", "-3 -0.5 0.7 2",
    "-0.0040496940948902835 -0.15426876936299344 0.5306254434438489 1.9544997361036416" },
  { "gelu_tanh", "gelu_tanh x=f64/4", "-3 -0.5 0.7 2",
    "-0.003637392081773019 -0.15428599017485609 0.5305701347051167 1.954597694087775" },
  { "sigmoid", "sigmoid x=f64/4", "-5 -0.5 0.7 5",
    "0.0066928509242848554 0.37754066879814546 0.668187772168166 0.9933071490757152" },
  { "tanh", "tanh x=f64/3", "-2 0.25 0.9",
    "-0.9640275800758169 0.24491866240370913 0.7162978701990245" },
  { "mish", "mish x=f64/4", "-3 -0.5 0.7 2",
    "-0.14564746127562458 -0.22074377465173 0.5611483776438518 1.9439589595339946" },
  { "hardswish", "hardswish x=f64/4", "-2.75 -1 0.7 2",
    "-0.11458333333333333 -0.3333333333333333 0.43166666666666664 1.6666666666666667" },
  { "elu alpha=1.5", "elu x=f64/3 alpha=1.5", "-2 -0.25 0.7",
    "-1.296997075145081 -0.3317988253928927 0.7" },
  { "silu beta=1.5", "silu x=f64/3 beta=1.5", "-3 -0.5 0.7",
    "-0.03296082789177954 -0.1604106504123035 0.5185424294275077" },
  { "softplus beta=2", "softplus x=f64/3 beta=2", "-3 -0.5 0.7",
    "0.0012378425688652247 0.1566308437591114 0.8102087049592255" },
  { "pow", "pow a=f64/3 b=f64/3", "2 1.5 10 | 0.5 -3.25 2.5",
    "1.4142135623730951 0.2677339269955096 316.22776601683796" },
  { "elu_backward alpha=1.5", "elu_backward dy=f64/3 x=f64/3 alpha=1.5", "2 2 2 | -2 -0.25 0.7",
    "0.40600584970983805 2.3364023492142145 2.0" },
  { "gelu_backward", "gelu_backward dy=f64/4 x=f64/4", "2 2 2 2 | -3 -0.5 0.7 2",
    "-0.023891294408367854 0.2650097506876743 1.9532282022673197 2.170463602156394" },
  { "gelu_tanh_backward", "gelu_tanh_backward dy=f64/4 x=f64/4", "2 2 2 2 | -3 -0.5 0.7 2",
    "-0.023168333261939452 0.2652601929307154 1.9527144373122078 2.1721985132472366" },
  { "silu_backward beta=1.5", "silu_backward dy=f64/3 x=f64/3 beta=1.5", "2 2 2 | -3 -0.5 0.7",
    "-0.07582218223884075 0.314800111006493 1.8848074390043374" },
  { "sigmoid_backward", "sigmoid_backward dy=f64/3 x=f64/3", "2 2 2 | -5 -0.5 0.7",
    "0.01329611334158031 0.470007424403189 0.4434257465862181" },
  { "tanh_backward", "tanh_backward dy=f64/3 x=f64/3", "2 2 2 | -2 0.25 0.9",
    "0.14130164970632894 1.880029697612756 0.9738347222966831" },
  { "softplus_backward beta=2", "softplus_backward dy=f64/3 x=f64/3 beta=2", "2 2 2 | -3 -0.5 0.7",
    "0.004945246313269549 0.5378828427399902 1.6043677771171634" },
  { "mish_backward", "mish_backward dy=f64/4 x=f64/4", "2 2 2 2 | -3 -0.5 0.7 2",
    "-0.18678622906464168 0.5790213558270244 1.9375897364003718 2.1386358685589792" },
  { "hardswish_backward", "hardswish_backward dy=f64/3 x=f64/3", "2 2 2 | -2.75 -1 0.7",
    "-0.8333333333333334 0.3333333333333333 1.4666666666666666" },
  { "softmax", "softmax x=f64/1x3", "0.5 -1.25 2", "0.17682018210744427 0.030726740326436432 0.7924530775661193" },
  { "log_softmax", "log_softmax x=f64/1x3", "0.5 -1.25 2", "-1.7326219831020326 -3.4826219831020326 -0.23262198310203266" },
};

/* ---- running a row ---------------------------------------------------------------------------- */

enum { MAX_TENSORS = 16, MAX_BYTES = 4096 };

static unsigned char memory[MAX_TENSORS][MAX_BYTES] __attribute__((aligned(64)));

/* Where the i-th element of v, row-major, lies. */
static unsigned char *element(unsigned char *base, const qn_value *v, int64_t i)
{
  int64_t offset = 0;
  for (int32_t d = v->rank - 1; d >= 0; d--) {
    offset += i % v->dim[d] * v->stride[d];
    i /= v->dim[d];
  }
  return base + offset * qn_kit_bytes(v->dtype);
}

/* One number of the text into `to`; NULL: there is none before the next "|". */
static const char *scan(const char *text, uint32_t dtype, void *to)
{
  char *end;
  if (qn_is_integer(dtype)) qn_store_i64(to, dtype, strtoll(text, &end, 10));
  else qn_store_f64(to, dtype, strtod(text, &end));
  return end == text ? NULL : end;
}

static const char *next_tensor(const char *text)
{
  const char *bar = strchr(text, '|');
  return bar ? bar + 1 : "";
}

static double tolerance;                  /* of the table: relative, 0 where numbers are exact */

static int same(const void *got, const void *expected, uint32_t dtype)
{
  if (!qn_is_float(dtype)) return qn_load_i64(got, dtype) == qn_load_i64(expected, dtype);
  const double a = qn_load_f64(got, dtype), b = qn_load_f64(expected, dtype);
  return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance * fabs(b);
}

/* Checks the outputs, or says in `why` what differs. */
static int check_outputs(const qn_graph_view *view, const char *out, char *why, size_t bytes)
{
  for (uint32_t k = view->n_ins; k < view->n_pointers; k++, out = next_tensor(out)) {
    const qn_value *v = &view->value[view->pointer[k]];
    const char *text = out;
    for (int64_t i = 0; i < qn_elements(v); i++) {
      unsigned char expected[8];
      text = scan(text, v->dtype, expected);
      if (!text) { snprintf(why, bytes, "the table has too few numbers for output %u", k - view->n_ins); return 0; }
      const unsigned char *got = element(memory[k], v, i);
      if (same(got, expected, v->dtype)) continue;
      snprintf(why, bytes, "output %u element %lld is %.17g, expected %.17g", k - view->n_ins, (long long)i,
               qn_load_f64(got, v->dtype), qn_load_f64(expected, v->dtype));
      return 0;
    }
    if (strspn(text, " ") != strcspn(text, "|")) { snprintf(why, bytes, "the table has too many numbers"); return 0; }
  }
  return 1;
}

/* Runs the row under these options; 0 and a sentence if it fails. */
static int run_row(const golden *row, const char *const options[], char *why, size_t bytes)
{
  qn_context *ctx = NULL;
  qn_graph *graph = NULL;
  qn_plan *plan = NULL;
  int good = 0;
  snprintf(why, bytes, "%s", "");
  if (qn_context_create(options, &ctx) || qn_graph_parse(row->line, &graph) || qn_plan_create(ctx, graph, &plan)) {
    snprintf(why, bytes, "%s", qn_last_error());
    goto done;
  }
  const qn_graph_view *view = qn_graph_inspect(graph);
  void *pointers[MAX_TENSORS];
  const char *in = row->in;
  memset(memory, 0xa5, sizeof memory);                    /* what is not written shows */
  for (uint32_t k = 0; k < view->n_pointers; k++) {
    const qn_value *v = &view->value[view->pointer[k]];
    pointers[k] = memory[k];
    if (k >= view->n_ins) {
      for (uint32_t j = 0; j < view->n_ins; j++)          /* in place: the input's memory */
        if (v->over == view->pointer[j]) pointers[k] = memory[j];
      continue;
    }
    for (int64_t i = 0; i < qn_elements(v); i++) {
      in = scan(in, v->dtype, element(memory[k], v, i));
      if (!in) { snprintf(why, bytes, "the table has too few numbers for input %u", k); goto done; }
    }
    in = next_tensor(in);
  }
  if (qn_plan_execute(ctx, plan, pointers) || qn_context_synchronize(ctx)) {
    snprintf(why, bytes, "%s", qn_last_error());
    goto done;
  }
  for (uint32_t k = view->n_ins; k < view->n_pointers; k++)
    if (pointers[k] != memory[k]) memcpy(memory[k], pointers[k], MAX_BYTES);
  good = check_outputs(view, row->out, why, bytes);
done:
  qn_plan_destroy(plan);
  qn_graph_destroy(graph);
  qn_context_destroy(ctx);
  return good;
}

static void run_table(const char *name, const golden *row, size_t n, double within)
{
  tolerance = within;
  for (size_t i = 0; i < n; i++) {
    char pin[128], why[512];
    const char *const preferred[] = { "backend=cpu_ref", NULL }, *const oracle[] = { "backend=cpu_ref", pin, NULL };
    snprintf(pin, sizeof pin, "engine=%.*s=direct", (int)strcspn(row[i].line, " "), row[i].line);
    if (within == 0 && !tap_ok(run_row(&row[i], preferred, why, sizeof why), "%s: %s", name, row[i].rule))
      tap_note("%s: %s", row[i].line, why);
    if (!tap_ok(run_row(&row[i], oracle, why, sizeof why), "%s: %s (oracle)", name, row[i].rule)) tap_note("%s: %s", row[i].line, why);
  }
}
#define RUN(table, within) run_table(#table, table, sizeof table / sizeof *table, within)

/* Transforms keep bits: NaNs with their payloads and signs, and -0. */
static void test_bits_kept(void)
{
  static const uint32_t x[] = { 0x7f800001, 0xffc12345, 0x80000000, 0x00000001 };
  uint32_t y[4] = { 0 };
  qn_context *ctx = NULL;
  const char *const cpu[] = { "backend=cpu_ref", NULL };
  const qn_tensor tx = qn_tensor_1d((void *)x, QN_F32, 4), ty = qn_tensor_1d(y, QN_F32, 4);
  const int ran = !qn_context_create(cpu, &ctx) && !qn_copy(ctx, &tx, &ty) && !qn_context_synchronize(ctx);
  tap_ok(ran && !memcmp(x, y, sizeof x), "transforms: bits are kept");
  qn_context_destroy(ctx);
}

int main(void)
{
  RUN(casts, 0);
  RUN(matmuls, 0);
  RUN(convolutions, 0);
  RUN(softmaxes, 0);
  RUN(normalizations, 0);
  RUN(losses, 0);
  RUN(quantizations, 0);
  RUN(randoms, 0);
  RUN(steps, 0);
  RUN(pools, 0);
  RUN(shared_pools, 0);
  RUN(neighbours, 0);
  RUN(samplings, 0);
  RUN(resamplings, 0);
  RUN(reductions, 0);
  RUN(transforms, 0);
  RUN(selections, 0);
  RUN(pointwise, 0);
  RUN(functions, 0x1p-52);
  test_bits_kept();
  return tap_done();
}
