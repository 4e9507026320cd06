# attention, its gradient, merge, rotary embeddings, cache writes: what libraries disagree on, with values where they are short; then
# geometry, every mask, lengths, ragged and paged sequences, scales of 8-bit operands, what must not be read.

# scale 0 is 1/sqrt(D); 1 is 1. Two keys: weights 1/(1 + e^-1/2) and 1/(1 + e)
attention_forward q=f32/1x1x1x4 k=f32/1x1x2x4 v=f32/1x1x2x1 lse=? ; q.is=1 k.is=1,1,1,1,0.75,0.75,0.75,0.75 v.is=1,0 y.is=0.62245933 y.within=1e-6 lse.is=2.474076984 lse.within=1e-6 as=f64
attention_forward q=f32/1x1x1x4 k=f32/1x1x2x4 v=f32/1x1x2x1 lse=? scale=1 ; q.is=1 k.is=1,1,1,1,0.75,0.75,0.75,0.75 v.is=1,0 y.is=0.731058579 y.within=1e-6 lse.is=4.313261688 lse.within=1e-6

# causal, more keys than queries: the last query sees the last key (bottom right), or the first query the first key (top left)
attention_forward q=f32/1x1x2x1 k=f32/1x1x3x1 v=f32/1x1x3x1 right=0 ; q.is=0 k.is=0 v.is=1,3,8 y.is=2,4
attention_forward q=f32/1x1x2x1 k=f32/1x1x3x1 v=f32/1x1x3x1 right=0 align=top_left ; q.is=0 k.is=0 v.is=1,3,8 y.is=1,2
# more queries than keys: the first rows see nothing
attention_forward q=f32/1x1x3x1 k=f32/1x1x2x1 v=f32/1x1x2x1 lse=? max=? right=0 ; q.is=0 k.is=0 v.is=2,4 y.is=0,2,3 lse.is=-inf,0,0.69314718 lse.within=1e-6 max.is=-inf,0,0
# the diagonal of the actual lengths
attention_forward q=f32/1x1x3x1 k=f32/1x1x4x1 v=f32/1x1x4x1 q_lengths=i32/1 kv_lengths=i64/1 right=0 ; q.is=0 k.is=0 v.is=1,3,8,nan q_lengths.is=2 kv_lengths.is=3 y.is=2,4,0 plain=1

# windows: left and right keys beside the diagonal, and itself
attention_forward q=f32/1x1x4x1 k=f32/1x1x4x1 v=f32/1x1x4x1 left=1 right=0 ; q.is=0 k.is=0 v.is=1,3,9,27 y.is=1,2,6,18
attention_forward q=f32/1x1x4x1 k=f32/1x1x4x1 v=f32/1x1x4x1 left=0 right=1 ; q.is=0 k.is=0 v.is=1,3,9,27 y.is=2,6,18,27
attention_forward q=f32/1x1x2x1 k=f32/1x1x6x1 v=f32/1x1x6x1 left=1 right=0 ; q.is=0 k.is=0 v.is=nan,nan,nan,1,3,9 y.is=2,6

# softcap comes before the bias; a bias of -Inf still hides
attention_forward q=f32/1x1x1x1 k=f32/1x1x2x1 v=f32/1x1x2x1 bias=f32/1x1x1x2 max=? scale=1 softcap=2 ; q.is=1 k.is=100,100 v.is=5,7 bias.is=1,-inf y.is=5 max.is=3 max.within=1e-6
# ALiBi: -slope |i + shift - j|, on both sides of the diagonal
attention_forward q=f32/1x2x2x1 k=f32/1x1x3x1 v=f32/1x1x3x1 slopes=f32/2 max=? lse=? mask=bool/1x1x1x3 ; q.is=0 k.is=0 v.is=1,2,4 slopes.is=0.5,2 mask.is=1,0,0 y.is=1 lse.is=-0.5,-1,-2,-4 max.is=-0.5,-1,-2,-4 plain=1
attention_forward q=f32/1x1x2x1 k=f32/1x1x3x1 v=f32/1x1x3x1 slopes=f32/1x1 max=? lse=? mask=bool/1x1x1x3 ; q.is=0 k.is=0 v.is=1,2,4 slopes.is=0.5 mask.is=0,0,1 y.is=4 lse.is=-0.5,0 max.is=-0.5,0 plain=1

# a sink joins the denominator and the lse only, unscaled; max is without it; alone it is the lse
attention_forward q=f32/1x1x1x4 k=f32/1x1x1x4 v=f32/1x1x1x1 sink=f32/1 lse=? max=? ; q.is=0 k.is=0 v.is=4 sink.is=0 y.is=2 lse.is=0.69314718 lse.within=1e-6 max.is=0
attention_forward q=f32/1x1x2x4 k=f32/1x1x1x4 v=f32/1x1x1x1 sink=f32/1 lse=? max=? right=0 ; q.is=0 k.is=0 v.is=4 sink.is=1.0986123 y.is=0,1 y.within=1e-6 lse.is=1.0986123,1.38629436 lse.within=1e-6 max.is=-inf,0
# all scores -Inf: as if nothing were seen
attention_forward q=f32/1x1x1x1 k=f32/1x1x2x1 v=f32/1x1x2x1 bias=f32/1x1x1x1 lse=? ; q.is=1 k.is=1 v.is=1 bias.is=-inf y.is=0 lse.is=-inf

# what nobody sees is not read: past the lengths, under the mask, the blocks, the window; a NaN query stays in its row
attention_forward q=f32/2x2x3x2 k=f32/2x1x4x2 v=f32/2x1x4x2 kv_lengths=i32/2 lse=? ; q.is=0 k.is=0,0,0,0,nan,nan,inf,nan,0,0,nan,nan,nan,nan,nan,nan v.is=1,2,3,4,nan,nan,inf,nan,7,9,nan,nan,nan,nan,nan,nan kv_lengths.is=2,1 y.is=2,3,2,3,2,3,2,3,2,3,2,3,7,9,7,9,7,9,7,9,7,9,7,9 plain=1
attention_forward q=f32/1x1x2x1 k=f32/1x1x4x1 v=f32/1x1x4x1 mask=bool/1x1x2x4 ; q.is=0 k.is=0,nan,0,0 v.is=1,nan,5,9 mask.is=1,0,1,0,0,0,1,1 y.is=3,7
attention_forward q=f32/1x1x2x1 k=f32/1x1x4x1 v=f32/1x1x4x1 blocks=u8/1x1x2x1 block_q=1 block_kv=2 ; q.is=0 k.is=0,0,nan,0 v.is=1,5,nan,9 blocks.is=1,1 y.is=3
attention_forward q=f32/1x1x3x1 k=f32/1x1x2x1 v=f32/1x1x2x1 lse=? ; q.is=0,nan,0 k.is=1,2 v.is=1,3 y.is=2,nan,2 lse.is=0.69314718,nan,0.69314718 lse.within=1e-6
attention_backward dy=f32/1x1x2x1 q=f32/1x1x2x1 k=f32/1x1x3x1 v=f32/1x1x3x1 y=f32/1x1x2x1 lse=f32/1x1x2 dv=? kv_lengths=i32/1 ; dy.is=1 q.is=0 k.is=1,2,nan v.is=1,3,nan y.is=2 lse.is=0.69314718 kv_lengths.is=2 dq.is=0.5,0.5 dk.is=0 dv.is=1,1,0 dq.within=1e-6 dv.within=1e-6
attention_backward dy=f32/1x1x3x1 q=f32/1x1x3x1 k=f32/1x1x2x1 v=f32/1x1x2x1 y=f32/1x1x3x1 lse=f32/1x1x3 dv=? right=0 ; dy.is=1 q.is=nan,0,0 k.is=1,2 v.is=1,3 y.is=0,1,2 lse.is=-inf,0,0.69314718 dq.is=0,0,0.5 dk.is=0 dv.is=1.5,0.5 dq.within=1e-6 dv.within=1e-6
# the same in rows of 16 bytes: a key past the length, queries before the first key and past their length
attention_backward dy=bf16/1x1x4x8 q=bf16/1x1x4x8 k=bf16/1x1x3x8 v=bf16/1x1x3x8 y=bf16/1x1x4x8 lse=f32/1x1x4 dv=? q_lengths=i32/1 kv_lengths=i32/1 right=0 ; dy.is=nan,nan,nan,nan,nan,nan,nan,nan,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,nan,nan,nan,nan,nan,nan,nan,nan q.is=nan,nan,nan,nan,nan,nan,nan,nan,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,inf,nan,nan,nan,nan,nan,nan,nan k.is=1,1,1,1,1,1,1,1,2,2,2,2,2,2,2,2,nan,nan,nan,nan,nan,nan,nan,nan v.is=1,1,1,1,1,1,1,1,3,3,3,3,3,3,3,3,nan,nan,nan,nan,nan,nan,nan,nan y.is=nan,nan,nan,nan,nan,nan,nan,nan,1,1,1,1,1,1,1,1,2,2,2,2,2,2,2,2,nan,nan,nan,nan,nan,nan,nan,nan lse.is=-inf,0,0.69314718,nan q_lengths.is=3 kv_lengths.is=2 dq.is=0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1.41421356,1.41421356,1.41421356,1.41421356,1.41421356,1.41421356,1.41421356,1.41421356,0,0,0,0,0,0,0,0 dq.within=0.01 dk.is=0 dv.is=1.5,1.5,1.5,1.5,1.5,1.5,1.5,1.5,0.5,0.5,0.5,0.5,0.5,0.5,0.5,0.5,0,0,0,0,0,0,0,0 dv.within=0.01 plain=1

# grouped heads share: query heads 0, 1 key head 0, heads 2, 3 key head 1
attention_forward q=f32/1x4x1x1 k=f32/1x2x1x1 v=f32/1x2x1x1 ; q.is=0 k.is=0 v.is=5,7 y.is=5,5,7,7
# the value within the key
attention_forward q=f32/1x1x1x3 k=f32/1x1x2x3 value_size=2 ; q.is=0 k.is=1,2,3,3,4,5 y.is=2,3
# dropout of one weight: kept or not by Philox; 1 - p is exact
attention_forward q=f32/1x1x4x1 k=f32/1x1x1x1 v=f32/1x1x1x1 seed=7 dropout=0 lse=? ; q.is=0 k.is=0 v.is=3 y.is=3
attention_forward q=f32/2x3x5x4 k=f32/2x3x19x4 v=f32/2x3x19x4 seed=7 offset=3 dropout=0.5 lse=? ; as=bf16,f64
attention_forward q=f32/2x3x5x4 k=f32/2x3x19x4 v=f32/2x3x19x4 seed=i64 offset=i64 dropout=0.1 right=0 ; seed.is=-8 offset.is=4294967296
attention_forward q=f32/1x2x9x4 k=f32/1x2x25x4 v=f32/1x2x25x4 q_starts=i32/4 kv_starts=i32/4 seed=7 dropout=0.3 ; q_starts.is=0,4,4,9 kv_starts.is=0,7,9,25

# far scores: 1e4, all equal, one that dominates, an lse below -88
attention_forward q=f32/1x1x3x2 k=f32/1x1x5x2 v=f32/1x1x5x3 scale=1 lse=? ; q.fill=large:2 k.fill=large:2
attention_forward q=f32/1x2x65x16 k=f32/1x2x64x16 v=f32/1x2x64x16 lse=? max=? ; q.is=1 k.is=-25
attention_forward q=f16/1x1x4x8 k=f16/1x1x9x8 v=f16/1x1x9x8 lse=? softcap=30 ; q.fill=large:2 k.fill=large:2 as=bf16
attention_forward q=f32/1x1x2x1 k=f32/1x1x3x1 v=f32/1x1x3x1 scale=1 lse=? ; q.is=1 k.is=0,200,0 v.is=5,7,9 y.is=7 lse.is=200

# remainders of tiles; one key; no keys, no queries
attention_forward q=f32/1x1x1x8 k=f32/1x1x1x8 v=f32/1x1x1x8 lse=? ; as=bf16,f16,f64
attention_forward q=bf16/1x2x63x16 k=bf16/1x2x65x16 v=bf16/1x2x65x16 lse=? right=0 ; as=f16
attention_forward q=bf16/1x1x129x64 k=bf16/1x1x191x64 v=bf16/1x1x191x64 lse=? right=0 left=70
attention_forward q=bf16/1x1x127x64 k=bf16/1x1x128x64 v=bf16/1x1x128x64 lse=? ; as=f16
attention_forward q=f32/1x1x128x128 k=f32/1x1x64x128 v=f32/1x1x64x128 right=0 ; as=bf16
attention_forward q=bf16/1x7x5x40 k=bf16/1x1x33x40 v=bf16/1x1x33x40 ; as=f16,f32
attention_forward q=bf16/1x12x3x72 k=bf16/1x1x20x72 v=bf16/1x1x20x80 right=0
attention_forward q=bf16/1x28x2x96 k=bf16/1x4x31x96 v=bf16/1x4x31x96 ; as=f32
attention_forward q=bf16/1x2x9x112 k=bf16/1x2x17x112 v=bf16/1x2x17x112
attention_forward q=bf16/1x2x9x160 k=bf16/1x2x17x160 v=bf16/1x2x17x160 right=0
attention_forward q=bf16/1x2x70x192 k=bf16/1x2x70x192 v=bf16/1x2x70x128 right=0
attention_forward q=bf16/1x2x5x256 k=bf16/1x2x66x256 v=bf16/1x2x66x256
# several tiles of keys and blocks of queries, some of which nobody sees; few queries and thousands of keys
attention_forward q=bf16/1x2x70x96 k=bf16/1x1x370x96 v=bf16/1x1x370x96 lse=? ; as=f16
attention_forward q=bf16/1x1x70x256 k=bf16/1x1x170x256 v=bf16/1x1x170x200 lse=? right=0
attention_forward q=f32/1x2x150x8 k=f32/1x1x401x8 v=f32/1x1x401x8 lse=? max=? right=0 ; as=bf16
attention_forward q=f32/1x1x140x12 k=f32/1x1x620x12 v=f32/1x1x620x20 lse=? left=50 right=3 ; as=f16
attention_forward q=f32/2x1x135x8 k=f32/2x1x390x8 v=f32/2x1x390x8 bias=f32/1x1x135x390 mask=bool/2x1x1x390 slopes=f32/1 sink=f32/1 kv_lengths=i32/2 seed=9 dropout=0.2 lse=? softcap=5 ; kv_lengths.is=195,390
attention_forward q=f32/2x4x1x8 k=f32/2x2x2100x8 v=f32/2x2x2100x12 kv_lengths=i32/2 lse=? max=? ; kv_lengths.is=1030,2100 as=bf16
attention_forward q=f32/1x2x3x40 k=f32/1x1x1300x40 v=f32/1x1x1300x16 bias=f32/1x2x1x1300 mask=bool/1x1x3x1300 sink=f32/2 seed=9 dropout=0.2 lse=? left=1100 right=0
attention_forward q=f32/2x3x1x7 k=f32/2x3x0x7 v=f32/2x3x0x5 lse=? max=? amax=? sink=f32/3
attention_forward q=bf16/2x2x3x8 k=bf16/2x1x0x8 v=bf16/2x1x0x8 lse=? ; as=f16
attention_forward q=f32/2x3x0x7 k=f32/2x3x4x7 v=f32/2x3x4x5 lse=?
attention_forward q=f32/0x3x2x7 k=f32/0x3x4x7 v=f32/0x3x4x5

# all at once; layouts: tokens before heads, q k v packed in one
attention_forward q=f32/2x4x13x8 k=f32/2x2x21x8 v=f32/2x2x21x8 bias=f32/2x1x13x21 mask=bool/1x4x1x21 slopes=f32/2x4 sink=f32/4 q_lengths=i32/2 kv_lengths=i32/2 lse=? max=? amax=? left=9 right=2 softcap=4 ; q_lengths.is=13,9 kv_lengths.is=20,21 as=bf16,f16,f64
attention_forward q=f32/2x4x13x8 k=f32/2x2x21x8 v=f32/2x2x21x8 bias=f32/1x4x1x21 mask=bool/2x1x13x21 slopes=f32/1x4 lse=? left=4 ; as=bf16
attention_forward q=f32/2x4x13x8 k=f32/2x2x21x8 v=f32/2x2x21x8 blocks=u8/2x4x4x2 block_q=4 block_kv=2 lse=? ; blocks.fill=bits
attention_forward q=f32/2x4x13x8 k=f32/2x2x21x8 v=f32/2x2x21x8 blocks=u8/1x1x3x1 block_q=5 block_kv=5 right=0 ; blocks.is=21,10,31
attention_forward q=bf16/2x4x13x8/416:8:32:1 k=bf16/2x2x21x8/336:8:16:1 v=bf16/2x2x21x8/336:8:16:1 y=bf16/2x4x13x8/416:8:32:1 lse=? right=0
attention_forward q=bf16/2x4x13x8/1248:8:96:1 k=bf16/2x4x13x8/1248:8:96:1 v=bf16/2x4x13x8/1248:8:96:1 y=f32/2x4x13x8/416:8:32:1 right=0
attention_forward q=bf16/2x4x13x8@2 k=bf16/2x2x21x8/0:168:8:1 v=bf16/2x2x21x8/336:168:1:21 q_lengths=i64/2 y=f32/2x4x13x8 ; q_lengths.is=-2,99

# several tiles in every way: parts of keys, few queries, groups, pages, ends of sequences
attention_forward q=bf16/1x2x130x64 k=bf16/1x1x330x64 v=bf16/1x1x330x64 lse=? max=? right=0
attention_forward q=bf16/2x8x1x128 k=bf16/2x2x700x128 v=bf16/2x2x700x128 kv_lengths=i32/2 sink=f32/8 lse=? ; kv_lengths.is=700,333
attention_forward q=bf16/2x8x1x128 k=bf16/2x2x300x128 v=bf16/2x2x300x128 kv_lengths=i32/2 lse=? max=? right=0 ; kv_lengths.is=300,133 as=f16
attention_forward q=bf16/3x5x1x64/320:64:320:1 k=bf16/3x1x70x64 v=bf16/3x1x70x64 y=bf16/3x5x1x64/640:128:640:1 lse=?
attention_forward q=f16/1x2x200x72 k=f16/1x1x330x72 v=f16/1x1x330x72 bias=f32/1x2x1x330 mask=bool/1x1x200x330 slopes=f32/2 lse=? left=100
attention_forward q=bf16/2x4x3x64 k=bf16/9x2x64x64 v=bf16/9x2x64x64 pages=i32/2x5 kv_lengths=i32/2 lse=? right=0 ; pages.is=3,1,8,0,5,7,7,-1,2,6 kv_lengths.is=300,270
attention_forward q=bf16/2x1x210x128 k=bf16/2x1x260x128 v=bf16/2x1x260x128 q_lengths=i32/2 kv_lengths=i32/2 sink=f32/1 lse=? right=0 ; q_lengths.is=210,131 kv_lengths.is=77,260
attention_forward q=bf16/1x2x300x128 k=bf16/1x2x520x128 v=bf16/1x2x520x128 lse=? left=130 right=0
attention_forward q=bf16/3x2x390x128 k=bf16/3x1x390x128 v=bf16/3x1x390x128 q_lengths=i32/3 kv_lengths=i32/3 lse=? right=0 ; q_lengths.is=390,100,0 kv_lengths.is=390,140,70
attention_forward q=bf16/2x4x70x64 k=bf16/2x2x150x64 v=bf16/2x2x150x64 seed=7 dropout=0.3 lse=? right=0 ; as=f16,f32
attention_forward q=bf16/2x8x1x128 k=bf16/2x2x700x128 v=bf16/2x2x700x128 kv_lengths=i32/2 seed=i64 offset=i64 dropout=0.5 lse=? ; kv_lengths.is=700,333 seed.is=-8 offset.is=4294967296
attention_forward q=bf16/1x4x20x576 k=bf16/1x1x100x576 value_size=512 seed=5 dropout=0.2 lse=?
attention_forward q=f32/1x2x40x128 k=f32/1x2x90x128 v=f32/1x2x90x128 seed=9 dropout=0.1 lse=? right=0

# few rows, 16 bytes of keys at once: heads of a group, with and without all elements; parts of a step, a window's first and last one; queries
# that see nothing, rows that are not finite, pages that do not exist
attention_forward q=bf16/2x8x1x128 k=bf16/2x2x700x128 v=bf16/2x2x700x128 lse=? max=? ; as=f16
attention_forward q=f16/1x12x1x64 k=f16/1x12x203x64 v=f16/1x12x203x64 lse=? ; as=bf16
attention_forward q=bf16/1x8x1x256 k=bf16/1x1x333x256 v=bf16/1x1x333x256 lse=? ; as=f16
attention_forward q=bf16/2x4x1x80 k=bf16/2x4x190x80 v=bf16/2x4x190x80 lse=? ; as=f16
attention_forward q=f16/1x6x2x96 k=f16/1x1x97x96 v=f16/1x1x97x112 lse=? right=0
attention_forward q=bf16/1x12x4x128 k=bf16/1x3x301x128 v=bf16/1x3x301x128 lse=? max=? right=0 left=70 ; as=f16
attention_forward q=bf16/2x10x3x64 k=bf16/2x2x130x64 v=bf16/2x2x130x64 q_lengths=i32/2 kv_lengths=i64/2 sink=f32/10 lse=? right=0 ; q_lengths.is=3,1 kv_lengths.is=130,2
attention_forward q=bf16/2x2x8x128 k=bf16/2x1x50x128 v=bf16/2x1x50x128 y=f32/2x2x8x128 kv_lengths=i32/2 lse=? align=top_left right=3 ; kv_lengths.is=0,31
attention_forward q=f16/1x2x1x64 k=f16/1x1x40x64 v=f16/1x1x40x64 lse=? ; q.is=0 k.is=nan v.is=nan
attention_forward q=bf16/2x4x1x64 k=bf16/9x2x64x64 v=bf16/9x2x64x64 pages=i32/2x5 kv_lengths=i32/2 lse=? right=0 ; pages.is=3,1,8,0,5,7,7,-1,2,6 kv_lengths.is=300,270 as=f16
attention_forward q=bf16/2x8x2x128 k=bf16/7x2x16x128/4096:128:256:1 v=bf16/7x2x16x128/4096:128:256:1 pages=i64/2x9 kv_lengths=i32/2 lse=? max=? right=0 left=99 ; pages.is=3,1,6,0,5,4,4,7,2,6,1,0,-5,2,3,1,1,1 kv_lengths.is=141,40
attention_forward q=f16/1x24x1x128 k=f16/5x2x32x128 v=f16/5x2x32x128 pages=i32/1x4 kv_lengths=i32/1 sink=f32/24 lse=? ; pages.is=4,2,0,1 kv_lengths.is=128
attention_forward q=bf16/2x8x1x128 k=bf16/2x2x304x128 v=bf16/2x2x304x128 bias=bf16/2x1x1x304 mask=bool/1x8x1x304 lse=? ; as=f16
attention_forward q=f16/2x12x1x64 k=f16/2x12x203x64 v=f16/2x12x203x64 slopes=f32/12 bias=f32/1x12x1x203 sink=f32/12 kv_lengths=i32/2 lse=? ; kv_lengths.is=203,60
attention_forward q=bf16/1x9x1x64 k=bf16/1x3x160x64 v=bf16/1x3x160x64 bias=bf16/1x9x1x160 mask=bool/1x1x1x160 lse=? max=? softcap=20 ; as=f16
attention_forward q=bf16/1x12x4x128 k=bf16/1x3x301x128 v=bf16/1x3x301x128 mask=bool/1x1x4x301 lse=? softcap=3 right=0 left=70
attention_forward q=f16/2x6x2x80 k=f16/2x2x61x80 v=f16/2x2x61x80 bias=f16/1x6x2x61 q_lengths=i32/2 lse=? right=0 ; q_lengths.is=2,1
attention_forward q=bf16/1x2x1x64 k=bf16/1x1x40x64 v=bf16/1x1x40x64 mask=bool/1x2x1x40 lse=? ; mask.is=0

# lengths beyond the extent and below 0 where rows are whole 16 bytes; masks that leave queries at the first and at the last end with no key
attention_forward q=bf16/3x4x70x64 k=bf16/3x2x90x64 v=bf16/3x2x90x64 q_lengths=i32/3 kv_lengths=i32/3 lse=? ; q_lengths.is=70,-2,99 kv_lengths.is=999,90,40 as=f16
attention_forward q=bf16/3x4x70x64 k=bf16/3x2x90x64 v=bf16/3x2x90x64 q_lengths=i32/3 kv_lengths=i32/3 lse=? right=0 ; q_lengths.is=70,1,30 kv_lengths.is=90,0,17
attention_forward q=bf16/2x4x70x64 k=bf16/2x4x150x64 v=bf16/2x4x150x64 lse=? right=0 align=top_left ; as=f16
attention_forward q=bf16/2x4x70x128 k=bf16/2x1x150x128 v=bf16/2x1x150x128 lse=? left=20 right=7
attention_forward q=bf16/2x4x150x64 k=bf16/2x4x70x64 v=bf16/2x4x70x64 lse=? left=20 right=7 align=top_left
attention_backward dy=bf16/2x4x70x64 q=bf16/2x4x70x64 k=bf16/2x2x90x64 v=bf16/2x2x90x64 y=bf16/2x4x70x64 lse=f32/2x4x70 dv=? q_lengths=i32/2 kv_lengths=i32/2 ; q_lengths.is=30,99 kv_lengths.is=999,40 lse.is=4
attention_backward dy=bf16/2x4x70x64 q=bf16/2x4x70x64 k=bf16/2x2x150x64 v=bf16/2x2x150x64 y=bf16/2x4x70x64 lse=f32/2x4x70 dv=? left=20 right=7 ; lse.is=4 as=f16
attention_backward dy=bf16/2x4x70x64 q=bf16/2x4x70x64 k=bf16/2x4x150x64 v=bf16/2x4x150x64 y=bf16/2x4x70x64 lse=f32/2x4x70 dv=? right=0 align=top_left ; lse.is=4

# ragged sequences, some empty; with lengths; tokens of none
attention_forward q=f32/1x4x20x8 k=f32/1x2x30x8 v=f32/1x2x30x8 q_starts=i32/5 kv_starts=i32/5 lse=? right=0 ; q_starts.is=0,7,7,8,20 kv_starts.is=0,9,14,14,30 as=bf16
attention_forward q=f32/1x4x20x8 k=f32/1x2x30x8 v=f32/1x2x30x8 q_starts=i64/4 kv_starts=i32/4 q_lengths=i32/3 kv_lengths=i32/3 lse=? max=? left=3 ; q_starts.is=2,7,12,18 kv_starts.is=1,9,19,30 q_lengths.is=3,9,6 kv_lengths.is=8,5,0 as=bf16
attention_forward q=f32/1x2x11x8 k=f32/3x2x9x8 v=f32/3x2x9x8 q_starts=i32/4 bias=f32/3x1x11x9 mask=bool/1x2x11x1 lse=? ; q_starts.is=0,5,6,11
attention_forward q=f32/3x2x4x8 k=f32/1x2x19x8 v=f32/1x2x19x8 kv_starts=i32/4 slopes=f32/3x2 bias=f32/1x2x4x19 lse=? right=1 ; kv_starts.is=0,5,13,19
# of several tiles; of queries alone, of keys alone; none at all; what is not finite in the sequences beside one
attention_forward q=bf16/1x2x196x8 k=bf16/1x1x230x8 v=bf16/1x1x230x8 q_starts=i32/5 kv_starts=i64/5 lse=? right=0 ; q_starts.is=4,49,49,179,190 kv_starts.is=0,50,60,200,225
attention_forward q=bf16/1x2x100x8 k=bf16/2x1x90x8 v=bf16/2x1x90x8 q_starts=i32/3 sink=f32/2 lse=? left=40 right=9 align=top_left ; q_starts.is=0,33,100
attention_forward q=bf16/2x2x60x8 k=bf16/1x1x180x8 v=bf16/1x1x180x8 kv_starts=i32/3 max=? ; kv_starts.is=0,40,170
attention_forward q=bf16/1x1x9x8 k=bf16/1x1x9x8 v=bf16/1x1x9x8 q_starts=i32/1 kv_starts=i32/1 lse=? ; q_starts.is=0 kv_starts.is=0
attention_forward q=bf16/1x1x5x8 k=bf16/1x1x4x8 v=bf16/1x1x4x8 q_starts=i32/4 kv_starts=i32/4 lse=? ; q.is=0 k.is=0 v.is=nan,nan,nan,nan,nan,nan,nan,nan,1,2,3,4,5,6,7,8,3,4,5,6,7,8,9,10,inf,inf,inf,inf,inf,inf,inf,inf q_starts.is=0,1,3,4 kv_starts.is=0,1,3,4 y.is=nan,nan,nan,nan,nan,nan,nan,nan,2,3,4,5,6,7,8,9,2,3,4,5,6,7,8,9,inf,inf,inf,inf,inf,inf,inf,inf,0,0,0,0,0,0,0,0 plain=1

# bias and masks in pieces of eight keys, of rows of their own or one for all; rows that see nothing; NaN behind a mask; not whole pieces
attention_forward q=f16/1x2x70x64 k=f16/1x1x200x64 v=f16/1x1x200x64 bias=f16/1x2x70x200 lse=? ; as=bf16
attention_forward q=bf16/2x1x130x40 k=bf16/2x1x136x40 v=bf16/2x1x136x40 mask=bool/2x1x1x136 lse=? right=0 ; as=f16
attention_forward q=f16/2x8x1x64 k=f16/2x2x328x64 v=f16/2x2x328x64 bias=f16/1x8x1x328 mask=bool/2x1x1x328 lse=? max=?
attention_forward q=bf16/1x2x70x128 k=bf16/1x2x264x128 v=bf16/1x2x264x128 bias=f32/1x1x70x264 softcap=5 lse=? right=0 left=100 ; as=f16
attention_forward q=f16/1x2x65x200 k=f16/1x1x128x200 v=f16/1x1x128x200 bias=f16/1x2x1x128 mask=bool/1x2x65x128 slopes=f32/2 sink=f32/2 lse=?
attention_forward q=f16/1x1x200x64 k=f16/1x1x8x64 v=f16/1x1x8x64 mask=bool/1x1x200x8 lse=? ; as=f32
attention_forward q=f32/1x1x2x8 k=f32/1x1x8x8 v=f32/1x1x8x8 mask=bool/1x1x2x8 ; k.is=1,1,1,1,1,1,1,1,nan,1,1,1,1,1,1,1,1 mask.is=1,0,0,0,0,0,0,1 as=bf16,f16
attention_forward q=bf16/3x2x49x32 k=bf16/3x2x49x32 v=bf16/3x2x49x32 bias=bf16/1x2x49x49 mask=bool/3x1x49x49 lse=?
# biases and masks of keys alone: large, -Inf, in f32 beside 16 bits, of all keys, a scale that is no power of two, -Inf for every key
attention_forward q=bf16/2x2x70x64 k=bf16/2x1x300x64 v=bf16/2x1x300x64 bias=f32/2x1x1x300 mask=bool/2x2x1x300 lse=? max=? scale=0.3 ; as=f16
attention_forward q=f16/2x2x70x40 k=f16/2x1x190x40 v=f16/2x1x190x40 bias=f16/2x1x1x190 sink=f32/2 lse=? right=0 left=90 scale=0.07 ; as=bf16
attention_forward q=f16/1x1x3x16 k=f16/1x1x5x16 v=f16/1x1x5x16 bias=f16/1x1x1x5 lse=? ; q.is=0 k.is=0 bias.is=-60000,-inf,-60000,-inf,-60000 as=bf16
attention_forward q=f16/1x1x3x16 k=f16/1x1x5x16 v=f16/1x1x5x16 bias=f32/1x1x1x5 lse=? scale=0.001 ; q.is=0 k.is=0 bias.is=-1000000,-1000001,-1000002,-inf,-1000000 as=bf16
attention_forward q=f16/2x1x3x16 k=f16/2x1x5x16 v=f16/2x1x5x16 bias=f16/2x1x1x5 mask=bool/1x1x1x5 lse=? ; bias.is=-inf,-inf,-inf,-inf,-inf,1,2,3,4,5 mask.is=1,1,1,1,0 as=bf16
attention_forward q=bf16/2x2x130x128 k=bf16/2x2x260x128 v=bf16/2x2x260x128 mask=bool/2x1x1x1 lse=? kv_lengths=i32/2 ; kv_lengths.is=260,131 as=f16
attention_forward q=bf16/1x2x70x200 k=bf16/1x1x130x200 v=bf16/1x1x130x200 bias=bf16/1x2x1x1 mask=bool/1x1x1x130 lse=? ; as=f16
# biases of queries and keys: other 16 bits than q's, -Inf in them, several tiles, one head for all, with a mask, slopes, a cap, lengths
attention_forward q=bf16/1x2x70x64 k=bf16/1x1x264x64 v=bf16/1x1x264x64 bias=f16/1x1x70x264 mask=bool/1x1x1x264 lse=? right=0 ; as=f16
attention_forward q=f16/2x2x200x64 k=f16/2x1x272x64 v=f16/2x1x272x64 bias=f16/2x1x200x272 sink=f32/2 kv_lengths=i32/2 lse=? right=20 left=150 ; bias.is=0.5,-inf,1,2,-inf kv_lengths.is=272,140 as=bf16
attention_forward q=f16/3x2x150x32 k=f16/3x2x150x32 v=f16/3x2x150x32 bias=bf16/1x2x150x150/45600:22800:152:1 slopes=f32/2 lse=? max=? softcap=5 left=70
attention_forward q=bf16/2x2x140x128 k=bf16/2x2x390x128 v=bf16/2x2x390x128 bias=bf16/1x2x140x390/109760:54880:392:1 kv_lengths=i32/2 q_lengths=i64/2 lse=? ; kv_lengths.is=390,100 q_lengths.is=0,140 as=f16
attention_forward q=bf16/1x2x140x256 k=bf16/1x1x144x256 v=bf16/1x1x144x256 bias=bf16/1x2x140x144 lse=? right=0 ; as=f16
# rows of bias that begin at whole pieces, of keys that end within one; rows that begin anywhere; keys apart
attention_forward q=bf16/2x2x70x64 k=bf16/2x2x197x64 v=bf16/2x2x197x64 bias=bf16/1x2x70x197/28000:14000:200:1 lse=? ; as=f16
attention_forward q=f16/1x2x33x128 k=f16/1x2x45x128 v=f16/1x2x45x128 bias=f16/1x1x33x45/1584:1584:48:1 lse=? right=0
attention_forward q=f16/1x2x1x64 k=f16/1x2x77x64 v=f16/1x2x77x64 bias=f16/1x2x1x77/160:80:80:1 lse=? ; as=f32
attention_forward q=f16/2x2x70x64 k=f16/2x2x197x64 v=f16/2x2x197x64 bias=f16/1x2x70x197 kv_lengths=i32/2 lse=? right=0 ; kv_lengths.is=197,100 as=bf16
attention_forward q=bf16/2x2x20x64 k=bf16/2x2x30x64 v=bf16/2x2x30x64 bias=bf16/2x1x1x30/60:60:60:2 lse=? ; bias.fill=signed:4

# as many sequences as fill a device of 132 multiprocessors: none has parts of its keys, but one alone has
attention_forward q=f32/200x2x1x4 k=f32/200x2x260x4 v=f32/200x2x260x4

# parts of the keys of few rows: one row a head, a group of 3, of 16; lengths; rows beyond them; fewer elements than the kernel's
attention_forward q=f16/1x2x1x64 k=f16/1x2x700x64 v=f16/1x2x700x64 lse=? max=? ; as=bf16
attention_forward q=bf16/2x3x1x128 k=bf16/2x1x800x128 v=bf16/2x1x800x128 kv_lengths=i32/2 sink=f32/3 lse=? ; kv_lengths.is=800,70
attention_forward q=bf16/1x16x1x96 k=bf16/1x1x1000x96 v=bf16/1x1x1000x80 lse=? left=900 right=0
attention_forward q=f16/2x2x5x64 k=f16/2x1x600x64 v=f16/2x1x600x64 q_lengths=i32/2 lse=? right=0 ; q_lengths.is=3,0
# a window that passes by most of the keys, whole parts of them too
attention_forward q=f32/2x4x3x20 k=f32/2x2x2500x20 v=f32/2x2x2500x20 kv_lengths=i32/2 lse=? left=30 right=0 ; kv_lengths.is=2500,1040 as=bf16
attention_forward q=f32/1x2x2x64 k=f32/1x1x2300x64 v=f32/1x1x2300x64 lse=? max=? left=5 right=4 align=top_left
# the same with an element's keys side by side, of values too
attention_forward q=f32/2x4x2x20 k=f32/2x2x75x20/3000:1500:1:75 v=f32/2x2x75x12/1800:900:1:75 kv_lengths=i32/2 lse=? ; kv_lengths.is=75,33 as=f16,bf16
attention_forward q=f32/1x2x1x64 k=f32/1x2x1100x64/140800:70400:1:1100 v=f32/1x2x1100x64 mask=bool/1x1x1x1100 lse=? ; as=bf16

# paged keys: shared, repeated and missing pages, entries past the length; NaN in pages of nobody and past the end of the last
attention_forward q=f32/1x1x1x1 k=f32/3x1x2x1 v=f32/3x1x2x1 pages=i32/1x3 kv_lengths=i32/1 ; q.is=0 k.is=nan,nan,0,0,0,nan v.is=nan,nan,2,4,9,nan pages.is=1,2,0 kv_lengths.is=3 y.is=5
attention_forward q=f32/1x1x1x1 k=f32/2x1x2x1 v=f32/2x1x2x1 pages=i32/1x3 kv_lengths=i32/1 ; q.is=0 k.is=0 v.is=1,3,5,7 pages.is=1,-1,0 kv_lengths.is=6 y.is=4
attention_forward q=f32/1x1x1x1 k=f32/2x1x2x1 v=f32/2x1x2x1 pages=i32/1x3 kv_lengths=i32/1 ; q.is=0 k.is=0 v.is=1,3,5,10 pages.is=0,1,1 kv_lengths.is=6 y.is=5.666666667 y.within=1e-6
attention_forward q=f32/3x4x2x8 k=f32/7x2x4x8 v=f32/7x2x4x8 pages=i32/3x4 kv_lengths=i32/3 lse=? right=0 ; pages.is=3,1,6,-9,0,0,2,99,5,3,1,4 kv_lengths.is=11,9,16 as=bf16
attention_forward q=f32/3x4x1x8 k=f32/7x2x4x8/64:8:16:1 v=f32/7x2x4x8/64:8:16:1 pages=i64/3x4 kv_lengths=i64/3 lse=? ; pages.is=3,-1,6,7,0,0,2,99,5,3,1,4 kv_lengths.is=13,16,0
attention_forward q=f32/1x4x9x8 k=f32/7x1x4x8 pages=i32/2x4 kv_lengths=i32/2 q_starts=i32/3 value_size=6 lse=? right=0 mask=bool/2x1x1x16 ; pages.is=3,1,6,2,0,0,2,5 kv_lengths.is=11,16 q_starts.is=0,3,9
attention_forward q=bf16/2x16x1x64 k=bf16/9x1x16x64 pages=i32/2x4 kv_lengths=i32/2 value_size=48 scale=0.2 ; pages.is=3,1,6,2,0,8,7,5 kv_lengths.is=64,33

# rows beyond 256 elements, values the first 512 of a key's 576: many heads, few; parts of keys; several queries, pages, ragged sequences
attention_forward q=bf16/2x66x1x576 k=bf16/2x1x70x576 kv_lengths=i32/2 value_size=512 lse=? max=? ; kv_lengths.is=67,1 as=f16
attention_forward q=bf16/2x6x3x576 k=bf16/9x1x64x576 pages=i32/2x5 kv_lengths=i32/2 value_size=512 lse=? right=0 ; pages.is=3,1,8,0,5,7,7,-1,2,6 kv_lengths.is=300,170
attention_forward q=f16/1x20x9x576 k=f16/7x1x16x576 pages=i64/3x4 kv_lengths=i32/3 q_starts=i32/4 sink=f32/20 value_size=512 lse=? right=0 ; pages.is=3,1,6,2,0,0,2,5,-1,4,4,4 kv_lengths.is=53,33,0 q_starts.is=0,3,8,9
attention_forward q=bf16/1x3x40x576 k=bf16/1x1x150x576 y=f32/1x3x40x512 value_size=512 left=30 right=2 max=?
attention_forward q=bf16/2x5x3x576/8640:1728:576:1 k=bf16/2x1x131x576 bias=f32/1x5x1x131 mask=bool/2x1x3x131 slopes=f32/5 sink=f32/5 blocks=u8/1x1x1x3 block_q=4 block_kv=6 softcap=8 value_size=512 lse=? ; blocks.fill=bits as=f16
# values of their own, or of other sizes
attention_forward q=bf16/1x2x33x512 k=bf16/1x1x40x512 v=bf16/1x1x40x512 right=0 lse=? ; as=f16
attention_forward q=f16/2x3x5x264 k=f16/2x3x40x264 v=f16/2x3x40x40 kv_lengths=i32/2 ; kv_lengths.is=40,9
attention_forward q=bf16/1x2x5x72 k=bf16/1x2x75x72 v=bf16/1x2x75x328 left=3 right=5 lse=?
attention_forward q=bf16/1x9x2x296 k=bf16/1x1x65x296 value_size=200

# 8-bit operands and their scales: one, of each head, of each block of tokens or of elements; 8-bit results
attention_forward q=e4m3/2x4x9x32 k=e4m3/2x2x17x32 v=e4m3/2x2x17x32 q_scale=f32 k_scale=f32 v_scale=f32 y=bf16/2x4x9x32 lse=? ; fill=signed q_scale.is=0.5 k_scale.is=2 v_scale.is=0.25
attention_forward q=e4m3/2x4x8x32 k=e5m2/2x2x16x32 v=e4m3/2x2x16x32 q_scale=f32/2x4x1x1 k_scale=f32/2x2x1x1 v_scale=f32/1x2x1x1 right=0 ; fill=signed q_scale.fill=near k_scale.fill=near v_scale.fill=signed
attention_forward q=i8/1x4x8x32 k=i8/1x2x16x32 v=f16/1x2x16x32 q_scale=f32/1x4x2x1 k_scale=f32/1x2x4x2 y=f16/1x4x8x32 lse=? ; q_scale.is=0.01,0.02,0.01,0.03,0.01,0.02,0.01,0.04 k_scale.is=0.02,0.01 v.fill=signed q.fill=int:100 k.fill=int:100
attention_forward q=bf16/1x4x3x32 k=e4m3/5x2x8x32 v=e5m2/5x2x8x32 k_scale=f32/1x2x1x1 v_scale=f32/5x1x1x1 pages=i32/1x3 kv_lengths=i32/1 y=f32/1x4x3x32 ; fill=signed k_scale.fill=near v_scale.fill=near pages.is=4,1,2 kv_lengths.is=19
attention_forward q=e4m3/1x2x8x32 k=e4m3/1x2x16x32 v=e4m3/1x2x16x32 y_scale=f32 y=e4m3/1x2x8x32 amax=? ; fill=signed y_scale.is=64
attention_forward q=bf16/1x2x8x32 k=bf16/1x2x16x32 v=bf16/1x2x16x32 y_scale=f32 y=e5m2/1x2x8x32 amax=? ; fill=signed y_scale.is=16384

# gradients
attention_backward dy=f32/2x4x9x8 q=f32/2x4x9x8 k=f32/2x2x13x8 v=f32/2x2x13x8 y=f32/2x4x9x8 lse=f32/2x4x9 dv=? ; as=bf16,f16,f64
attention_backward dy=f32/2x4x9x6 q=f32/2x4x9x8 k=f32/2x2x13x8 v=f32/2x2x13x6 y=f32/2x4x9x6 lse=f32/2x4x9 dlse=f32/2x4x9 bias=f32/1x4x9x13 sink=f32/4 dv=? dbias=? dsink=? left=3 right=1 softcap=3 ; as=bf16,f64
attention_backward dy=f32/2x4x6x4 q=f32/2x4x6x4 k=f32/2x2x7x4 v=f32/2x2x7x4 y=f32/2x4x6x4 lse=f32/2x4x6 bias=f32/2x1x1x7 mask=bool/1x4x6x7 slopes=f32/4 dv=? dbias=? right=0 scale=0.3
attention_backward dy=f32/2x4x6x4 q=f32/2x4x6x4 k=f32/2x2x7x4 v=f32/2x2x7x4 y=f32/2x4x6x4 lse=f32/2x4x6 q_lengths=i32/2 kv_lengths=i32/2 sink=f32/4 dv=? dsink=? dq=f32/2x4x6x4/96:4:16:1 right=0 ; q_lengths.is=6,4 kv_lengths.is=3,7 as=bf16
attention_backward dy=f32/2x4x6x4 q=f32/2x4x6x4 k=f32/2x2x7x4 v=f32/2x2x7x4 y=f32/2x4x6x4 lse=f32/2x4x6 kv_lengths=i32/2 dv=? ; kv_lengths.is=3,0
attention_backward dy=f32/2x2x5x2 q=f32/2x2x5x4 k=f32/2x1x5x4 y=f32/2x2x5x2 lse=f32/2x2x5 value_size=2 right=0 ; as=f64
attention_backward dy=f32/1x2x7x4 q=f32/1x2x7x4 k=f32/1x2x9x4 v=f32/1x2x9x4 y=f32/1x2x7x4 lse=f32/1x2x7 q_starts=i32/4 kv_starts=i64/4 dv=? right=0 dropout=0.3 seed=5 mask=bool/3x1x1x9 bias=f32/1x1x7x1 dbias=? sink=f32/2 dsink=? ; q_starts.is=0,3,3,7 kv_starts.is=0,4,6,9
attention_backward dy=f32/2x2x5x4 q=f32/2x2x5x4 k=f32/2x2x9x4 v=f32/2x2x9x4 y=f32/2x2x5x4 lse=f32/2x2x5 seed=7 offset=2 dropout=0.5 dv=? ; as=bf16,f64
attention_backward dy=f32/2x4x9x8 q=f32/2x4x9x8 k=f32/2x1x13x8 v=f32/2x1x13x8 y=f32/2x4x9x8 lse=f32/2x4x9 blocks=u8/2x1x3x1 block_q=3 block_kv=4 dv=? ; blocks.fill=bits as=bf16
attention_backward dy=bf16/1x2x65x64 q=bf16/1x2x65x64 k=bf16/1x2x129x64 v=bf16/1x2x129x64 y=bf16/1x2x65x64 lse=f32/1x2x65 dv=? right=0 ; as=f16
attention_backward dy=bf16/1x2x33x128 q=bf16/1x2x33x192 k=bf16/1x1x63x192 v=bf16/1x1x63x128 y=bf16/1x2x33x128 lse=f32/1x2x33 dv=?
attention_backward dy=f32/1x2x140x8 q=f32/1x2x140x8 k=f32/1x1x400x8 v=f32/1x1x400x8 y=f32/1x2x140x8 lse=f32/1x2x140 dv=? right=0 left=170 ; as=bf16
attention_backward dy=f32/2x1x131x8 q=f32/2x1x131x8 k=f32/2x1x200x8 v=f32/2x1x200x8 y=f32/2x1x131x8 lse=f32/2x1x131 q_lengths=i32/2 kv_lengths=i32/2 mask=bool/1x1x131x200 seed=9 dropout=0.2 dv=? softcap=5 ; q_lengths.is=131,70 kv_lengths.is=193,150
attention_backward dy=f32/1x1x3x4 q=f32/1x1x3x4 k=f32/1x1x0x4 v=f32/1x1x0x4 y=f32/1x1x3x4 lse=f32/1x1x3 dv=?
# rows of whole 16 bytes: tiles of queries and of keys that are whole, in part or not seen; groups; tokens before heads; values within keys
attention_backward dy=bf16/2x2x70x24 q=bf16/2x2x70x24 k=bf16/2x1x150x24 v=bf16/2x1x150x24 y=bf16/2x2x70x24 lse=f32/2x2x70 dlse=f32/2x2x70 sink=f32/2 dsink=? dv=? dq=f32/2x2x70x24 scale=0.02 ; lse.is=3 as=f16
attention_backward dy=bf16/1x1x135x72 q=bf16/1x1x135x104 k=bf16/1x1x150x104 v=bf16/1x1x150x72 y=f32/1x1x135x72 lse=f32/1x1x135 dv=f32/1x1x150x72 left=40 right=3
attention_backward dy=f16/1x1x200x16 q=f16/1x1x200x16 k=f16/1x1x70x16 v=f16/1x1x70x16 y=f16/1x1x200x16 lse=f32/1x1x200 dv=? scale=0.02 left=30 right=0 align=top_left ; lse.is=3
attention_backward dy=bf16/2x2x70x16/2240:16:32:1 q=bf16/2x2x70x16/6720:16:96:1 k=bf16/2x2x70x16/6720:16:96:1 v=bf16/2x2x70x16/6720:16:96:1 y=bf16/2x2x70x16/2240:16:32:1 lse=f32/2x2x70 dq=bf16/2x2x70x16/6720:16:96:1 dk=bf16/2x2x70x16/6720:16:96:1 dv=bf16/2x2x70x16/6720:16:96:1 right=0
attention_backward dy=bf16/1x2x70x40 q=bf16/1x2x70x48 k=bf16/1x1x70x48 y=bf16/1x2x70x40 lse=f32/1x2x70 value_size=40 right=0
attention_backward dy=bf16/2x2x70x72 q=bf16/2x2x70x72 k=bf16/2x1x99x72 v=bf16/2x1x99x72 y=bf16/2x2x70x72 lse=f32/2x2x70 bias=f32/2x1x1x99 mask=bool/1x2x70x99 slopes=f32/2x2 dv=? right=0 softcap=4 ; slopes.fill=pos lse.is=4
attention_backward dy=bf16/3x2x70x16 q=bf16/3x2x70x16 k=bf16/3x1x140x16 v=bf16/3x1x140x16 y=bf16/3x2x70x16 lse=f32/3x2x70 q_lengths=i32/3 kv_lengths=i64/3 dv=? right=0 ; q_lengths.is=70,65,3 kv_lengths.is=140,40,0
attention_backward dy=f16/1x2x70x16 q=f16/1x2x70x16 k=f16/1x2x99x16 v=f16/1x2x99x16 y=f16/1x2x70x16 lse=f32/1x2x70 bias=f16/1x2x70x1 seed=7 offset=2 scale=0.02 dropout=0.3 dv=? ; lse.is=3
attention_backward dy=bf16/2x2x70x16 q=bf16/2x2x70x16 k=bf16/2x1x99x16 v=bf16/2x1x99x16 y=bf16/2x2x70x16 lse=f32/2x2x70 seed=7 offset=2 dropout=0.3 dv=? scale=0.02 right=0 ; lse.is=4 as=f16,f32
attention_backward dy=bf16/1x2x70x136 q=bf16/1x2x70x256 k=bf16/1x1x99x256 v=bf16/1x1x99x136 y=bf16/1x2x70x136 lse=f32/1x2x70 dv=? right=0 scale=0.02 ; lse.is=4
attention_backward dy=f16/1x1x40x160 q=f16/1x1x40x160 k=f16/1x1x70x160 v=f16/1x1x70x160 y=f16/1x1x40x160 lse=f32/1x1x40 dv=? scale=0.02 softcap=3 ; lse.is=4
# several blocks of 128 keys add to a tile's dq
attention_backward dy=bf16/2x1x150x128 q=bf16/2x1x150x128 k=bf16/2x1x300x128 v=bf16/2x1x300x128 y=bf16/2x1x150x128 lse=f32/2x1x150 kv_lengths=i32/2 dv=? right=0 scale=0.02 ; lse.is=4 kv_lengths.is=300,140
attention_backward dy=f16/1x1x300x64 q=f16/1x1x300x64 k=f16/1x1x270x64 v=f16/1x1x270x64 y=f16/1x1x300x64 lse=f32/1x1x300 dv=? left=100 right=20 scale=0.02 ; lse.is=4 as=bf16
attention_backward dy=bf16/1x2x150x128 q=bf16/1x2x150x192 k=bf16/1x1x300x192 v=bf16/1x1x300x128 y=bf16/1x2x150x128 lse=f32/1x2x150 kv_lengths=i32/1 dv=? right=0 scale=0.02 ; lse.is=4 kv_lengths.is=270
attention_backward dy=f16/1x1x300x104 q=f16/1x1x300x168 k=f16/1x1x270x168 v=f16/1x1x270x104 y=f16/1x1x300x104 lse=f32/1x1x300 dv=? left=100 right=20 scale=0.02 ; lse.is=4 as=bf16
attention_backward dy=bf16/1x1x200x96 q=bf16/1x1x200x176 k=bf16/1x1x140x176 y=bf16/1x1x200x96 lse=f32/1x1x200 value_size=96 scale=0.02 ; lse.is=4
# rows of more than 128 elements: blocks of 64 keys; heads of a group that do not divide among blocks
attention_backward dy=bf16/1x2x150x256 q=bf16/1x2x150x256 k=bf16/1x1x170x256 v=bf16/1x1x170x256 y=bf16/1x2x150x256 lse=f32/1x2x150 kv_lengths=i32/1 dv=? right=0 scale=0.02 ; lse.is=4 kv_lengths.is=140 as=f16
attention_backward dy=f16/1x1x130x160/20800:160:160:1 q=f16/1x1x130x160 k=f16/1x1x140x160 v=f16/1x1x140x160 y=f16/1x1x130x160 lse=f32/1x1x130 dv=? left=70 right=20 scale=0.02 ; lse.is=4
attention_backward dy=bf16/2x7x70x192 q=bf16/2x7x70x192 k=bf16/2x1x99x192 v=bf16/2x1x99x192 y=bf16/2x7x70x192 lse=f32/2x7x70 sink=f32/7 dsink=? dv=? right=0 scale=0.02 ; lse.is=4
attention_backward dy=bf16/1x8x70x136 q=bf16/1x8x70x208 k=bf16/1x1x130x208 v=bf16/1x1x130x136 y=bf16/1x8x70x136 lse=f32/1x8x70 dlse=f32/1x8x70 dq=f32/1x8x70x208 dk=f32/1x1x130x208 dv=f32/1x1x130x136 scale=0.02 ; lse.is=4
attention_backward dy=f16/1x7x140x64 q=f16/1x7x140x64 k=f16/1x1x270x64 v=f16/1x1x270x64 y=f16/1x7x140x64 lse=f32/1x7x140 dv=? right=0 scale=0.02 ; lse.is=4
# changed scores: masks and biases of keys alone, of pairs, spread or apart; queries that see none; softcap; slopes
attention_backward dy=bf16/3x2x140x64 q=bf16/3x2x140x64 k=bf16/3x1x150x64 v=bf16/3x1x150x64 y=bf16/3x2x140x64 lse=f32/3x2x140 mask=bool/3x1x1x150 dv=? scale=0.02 ; lse.is=4,-inf,3
attention_backward dy=f16/2x2x70x32 q=f16/2x2x70x32 k=f16/2x2x150x32 v=f16/2x2x150x32 y=f16/2x2x70x32 lse=f32/2x2x70 bias=f16/1x2x70x150 dv=? right=0 scale=0.1 ; lse.is=4 as=bf16
attention_backward dy=f16/2x2x70x64 q=f16/2x2x70x64 k=f16/2x2x197x64 v=f16/2x2x197x64 y=f16/2x2x70x64 lse=f32/2x2x70 bias=f16/1x2x70x197 dv=? dbias=? seed=3 dropout=0.1 scale=0.1 ; lse.is=4 as=bf16
attention_backward dy=bf16/2x2x70x64 q=bf16/2x2x70x64 k=bf16/2x2x197x64 v=bf16/2x2x197x64 y=bf16/2x2x70x64 lse=f32/2x2x70 bias=bf16/1x2x70x197/28000:14000:200:1 dv=? scale=0.1 ; lse.is=4 as=f16
attention_backward dy=bf16/2x2x140x80 q=bf16/2x2x140x80 k=bf16/2x1x135x80 v=bf16/2x1x135x80 y=bf16/2x2x140x80 lse=f32/2x2x140 bias=f32/2x1x1x135 mask=bool/1x2x140x135 dv=? kv_lengths=i32/2 scale=0.1 ; lse.is=4 kv_lengths.is=135,20
attention_backward dy=f16/1x2x140x64 q=f16/1x2x140x64 k=f16/1x2x140x64 v=f16/1x2x140x64 y=f16/1x2x140x64 lse=f32/1x2x140 bias=f16/1x1x140x1 slopes=f32/2 dv=? left=50 right=10 ; lse.is=4 slopes.fill=pos
attention_backward dy=bf16/1x4x70x256 q=bf16/1x4x70x256 k=bf16/1x2x99x256 v=bf16/1x2x99x256 y=bf16/1x4x70x256 lse=f32/1x4x70 mask=bool/1x1x70x99 dv=? right=0 softcap=5 scale=0.05 ; lse.is=4 as=f16
attention_backward dy=bf16/1x2x70x72 q=bf16/1x2x70x72 k=bf16/1x2x99x72 v=bf16/1x2x99x72 y=bf16/1x2x70x72 lse=f32/1x2x70 dv=? left=40 softcap=3 ; lse.is=4
attention_backward dy=f16/1x2x70x104 q=f16/1x2x70x168 k=f16/1x1x99x168 v=f16/1x1x99x104 y=f16/1x2x70x104 lse=f32/1x2x70 bias=f16/1x2x70x99 slopes=f32/2 dv=? scale=0.1 ; lse.is=4 slopes.fill=pos
# biases in whole rows of pieces of 8 keys; more heads than one
attention_backward dy=f16/2x2x140x64 q=f16/2x2x140x64 k=f16/2x2x152x64 v=f16/2x2x152x64 y=f16/2x2x140x64 lse=f32/2x2x140 bias=f16/1x2x140x152 dv=? scale=0.05 ; lse.is=4 as=bf16
attention_backward dy=bf16/1x4x70x80 q=bf16/1x4x70x80 k=bf16/1x2x136x80 v=bf16/1x2x136x80 y=bf16/1x4x70x80 lse=f32/1x4x70 bias=bf16/1x1x70x136 mask=bool/1x4x70x136 dv=? right=0 scale=0.1 ; lse.is=4 as=f16
attention_backward dy=f16/3x2x261x32 q=f16/3x2x261x32 k=f16/3x2x264x32 v=f16/3x2x264x32 y=f16/3x2x261x32 lse=f32/3x2x261 bias=bf16/3x1x261x264 kv_lengths=i32/3 q_lengths=i32/3 dv=? scale=0.05 ; lse.is=4 kv_lengths.is=264,130,3 q_lengths.is=261,3,130
attention_backward dy=f16/2x2x140x32 q=f16/2x2x140x24 k=f16/2x2x152x24 v=f16/2x2x152x32 y=f16/2x2x140x32 lse=f32/2x2x140 bias=f16/1x2x140x152 dv=? scale=0.05 left=60 ; lse.is=4
attention_backward dy=f16/1x2x392x32 q=f16/1x2x392x32 k=f16/1x2x136x32 v=f16/1x2x136x32 y=f16/1x2x392x32 lse=f32/1x2x392 bias=f16/1x2x392x136 dv=? scale=0.05 ; lse.is=4
attention_backward dy=bf16/1x4x70x96 q=bf16/1x4x70x72 k=bf16/1x1x136x72 v=bf16/1x1x136x96 y=bf16/1x4x70x96 lse=f32/1x4x70 dv=? scale=0.1 ; lse.is=4 as=f16
# a head is a tile
attention_backward dy=f16/5x3x49x32 q=f16/5x3x49x32 k=f16/5x3x49x32 v=f16/5x3x49x32 y=f16/5x3x49x32 lse=f32/5x3x49 bias=f16/1x3x49x49 dv=? scale=0.05 ; lse.is=4 as=bf16
attention_backward dy=bf16/3x2x64x64 q=bf16/3x2x64x64 k=bf16/3x2x64x64 v=bf16/3x2x64x64 y=bf16/3x2x64x64 lse=f32/3x2x64 bias=f32/3x1x64x64 dlse=f32/3x2x64 kv_lengths=i32/3 q_lengths=i32/3 dv=? right=0 scale=0.05 ; lse.is=4,-inf,3 kv_lengths.is=64,30,0 q_lengths.is=64,0,13 as=f16
attention_backward dy=bf16/1x30x33x40 q=bf16/1x30x33x56 k=bf16/1x30x50x56 v=bf16/1x30x50x40 y=bf16/1x30x33x40 lse=f32/1x30x33 dv=f32/1x30x50x40 dq=f32/1x30x33x56 left=20 scale=0.05 ; lse.is=4
attention_backward dy=f16/2x2x60x64 q=f16/2x2x60x64 k=f16/2x2x61x64 v=f16/2x2x61x64 y=f16/2x2x60x64 lse=f32/2x2x60 bias=f16/1x1x1x61 slopes=f32/2 mask=bool/2x1x60x61 dbias=? dv=? dropout=0.2 seed=5 softcap=3 ; lse.is=4 slopes.fill=pos as=bf16
attention_backward dy=f16/2x2x60x24 q=f16/2x2x60x24 k=f16/2x2x20x24 y=f16/2x2x60x24 lse=f32/2x2x60 sink=f32/2 dsink=? right=0 value_size=24 ; lse.is=4
attention_backward dy=bf16/1x1x3x8 q=bf16/1x1x3x8 k=bf16/1x1x0x8 v=bf16/1x1x0x8 y=bf16/1x1x3x8 lse=f32/1x1x3 dv=?
attention_backward dy=bf16/1x1x0x8 q=bf16/1x1x0x8 k=bf16/1x1x5x8 v=bf16/1x1x5x8 y=bf16/1x1x0x8 lse=f32/1x1x0 dv=?

# ragged: an empty sequence, tokens of none, lengths; queries or keys alone
attention_backward dy=bf16/1x2x150x16 q=bf16/1x2x150x16 k=bf16/1x1x170x16 v=bf16/1x1x170x16 y=bf16/1x2x150x16 lse=f32/1x2x150 q_starts=i32/4 kv_starts=i64/4 dv=? right=0 scale=0.02 ; q_starts.is=0,70,70,150 kv_starts.is=0,100,105,170 lse.is=3 as=f16,f32
attention_backward dy=bf16/1x2x140x72 q=bf16/1x2x140x104 k=bf16/1x2x90x104 v=bf16/1x2x90x72 y=bf16/1x2x140x72 lse=f32/1x2x140 dlse=f32/1x2x140 q_starts=i64/3 kv_starts=i32/3 q_lengths=i32/2 kv_lengths=i32/2 bias=f32/2x1x140x1 mask=bool/1x2x1x90 blocks=u8/2x1x4x1 block_q=40 block_kv=16 slopes=f32/2 sink=f32/2 dsink=? dv=? left=60 right=20 dropout=0.3 seed=5 scale=0.02 ; q_starts.is=5,75,140 kv_starts.is=2,2,85 q_lengths.is=60,65 kv_lengths.is=0,70 lse.is=3 slopes.fill=pos blocks.fill=bits
attention_backward dy=bf16/1x2x100x8 q=bf16/1x2x100x8 k=bf16/2x1x70x8 v=bf16/2x1x70x8 y=bf16/1x2x100x8 lse=f32/1x2x100 q_starts=i32/3 dv=? right=0 align=top_left scale=0.02 ; q_starts.is=0,64,100 lse.is=3
attention_backward dy=bf16/2x2x70x8 q=bf16/2x2x70x8 k=bf16/1x1x100x8 y=bf16/2x2x70x8 lse=f32/2x2x70 kv_starts=i32/3 value_size=8 scale=0.02 ; kv_starts.is=0,33,99 lse.is=3
# the gradient of a bias, of one spread over sequences, heads, queries, keys, all of them; of rows that see nothing
attention_backward dy=bf16/2x4x70x16 q=bf16/2x4x70x16 k=bf16/2x2x99x16 v=bf16/2x2x99x16 y=bf16/2x4x70x16 lse=f32/2x4x70 bias=f32/1x4x70x99 dbias=? dv=? right=0 softcap=4 scale=0.2 ; lse.is=4 as=f16,f32
attention_backward dy=bf16/2x2x70x136 q=bf16/2x2x70x136 k=bf16/2x1x99x136 v=bf16/2x1x99x136 y=bf16/2x2x70x136 lse=f32/2x2x70 bias=bf16/2x1x1x99 dbias=? dv=? kv_lengths=i32/2 scale=0.02 ; lse.is=4 kv_lengths.is=99,40
attention_backward dy=f32/2x2x70x24 q=f32/2x2x70x40 k=f32/2x2x99x40 v=f32/2x2x99x24 y=f32/2x2x70x24 lse=f32/2x2x70 bias=f16/1x2x70x1 mask=bool/1x1x70x99 dbias=f32/1x2x70x1 dv=? dropout=0.3 seed=3 left=30 scale=0.02 ; lse.is=4 as=bf16
attention_backward dy=bf16/3x2x70x16 q=bf16/3x2x70x16 k=bf16/3x2x99x16 v=bf16/3x2x99x16 y=bf16/3x2x70x16 lse=f32/3x2x70 bias=f32/1x1x1x1 dbias=? dv=? q_lengths=i32/3 scale=0.02 ; lse.is=4 q_lengths.is=70,0,65
attention_backward dy=bf16/2x3x70x24 q=bf16/2x3x70x24 k=bf16/2x3x99x24 v=bf16/2x3x99x24 y=bf16/2x3x70x24 lse=f32/2x3x70 bias=bf16/1x1x1x99 dbias=? seed=3 dropout=0.1 dv=? scale=0.02 ; lse.is=4 as=f32
attention_backward dy=bf16/1x2x70x16 q=bf16/1x2x70x16 k=bf16/1x2x99x16 v=bf16/1x2x99x16 y=bf16/1x2x70x16 lse=f32/1x2x70 bias=f32/1x1x70x99 dbias=? dv=? scale=0.02 ; lse.is=-inf,3

# merge: shares, an empty part on either side and on both, which is not read; in place
attention_merge y1=f32/3x1 lse1=f32/3 y2=f32/3x1 lse2=f32/3 lse=? ; y1.is=2,nan,4 lse1.is=0,-inf,1 y2.is=4,5,nan lse2.is=0,3,-inf y.is=3,5,4 lse.is=0.69314718,3,1 lse.within=1e-6
attention_merge y1=f32/2x1 lse1=f32/2 y2=f32/2x1 lse2=f32/2 lse=? ; y1.is=nan,1 lse1.is=-inf,nan y2.is=nan,1 lse2.is=-inf,0 y.is=0,nan lse.is=-inf,nan
attention_merge y1=f32/2x3x5x8 lse1=f32/2x3x5 y2=f32/2x3x5x8 lse2=f32/2x3x5 lse=? ; as=bf16,f16,f64
attention_merge y1=bf16/2x3x5x70 lse1=f32/2x3x5 y2=f32/2x3x5x70 lse2=f32/2x3x5 y=y1 lse=lse1 ; lse1.fill=signed:50 lse2.fill=signed:50
attention_merge y1=f32/2x3x5x8/120:8:24:1 lse1=f32/2x3x5/15:1:3 y2=f32/2x3x5x8 lse2=f32/2x3x5 lse=? ; lse2.is=-inf,1,2
attention_merge y1=f64/7 lse1=f64 y2=f64/7 lse2=f64 lse=? ; lse1.fill=signed lse2.fill=signed
attention_merge y1=bf16/3x300 lse1=f32/3 y2=f32/3x300 lse2=f32/3 y=f16/3x300 ; lse1.fill=signed:50 lse2.fill=signed:50
attention_merge y1=bf16/2x3x2x13/312:104:39:3 lse1=f32/2x3x2 y2=bf16/2x3x2x13 lse2=f32/2x3x2 lse=? ; lse1.fill=signed:90 lse2.fill=signed:90

# rotary: pairs of halves or neighbours; part of a row; positions, one set for all, outside the table; in place
rotary x=f32/1x1x1x4 cos=f32/2x2 sin=f32/2x2 positions=i32/1x1 ; x.is=1,2,3,4 cos.is=9,9,0,1 sin.is=9,9,1,0 positions.is=1 y.is=-3,2,1,4
rotary x=f32/1x1x1x4 cos=f32/2x2 sin=f32/2x2 positions=i32/1x1 interleaved=1 ; x.is=1,2,3,4 cos.is=9,9,0,1 sin.is=9,9,1,0 positions.is=1 y.is=-2,1,3,4
rotary x=f32/1x1x3x6 cos=f32/2x2 sin=f32/2x2 ; x.is=1,2,3,4,5,6 cos.is=1,1,0,0 sin.is=0,0,1,1 y.is=1,2,3,4,5,6,-3,-4,1,2,5,6,0,0,0,0,5,6
rotary x=f32/2x3x5x8 cos=f32/16x4 sin=f32/16x4 positions=i64/2x5 ; as=bf16,f16,f64
rotary x=bf16/2x3x5x8 cos=f32/16x3 sin=f32/16x3 positions=i32/1x5 interleaved=1 y=x ; positions.is=3,15,-1,16,0 as=f16
rotary x=bf16/2x3x5x64/960:64:192:1 cos=bf16/5x32 sin=f32/5x32 y=f32/2x3x5x64
rotary x=bf16/2x3x129x128 cos=f32/129x64 sin=f32/129x64 positions=i32/2x129 ; as=f32
rotary x=f32/2x3x5x7 cos=f32/5x0 sin=f32/5x0
# pieces of eight in part: pairs, elements beyond them, neighbours, gaps
rotary x=f32/2x3x5x41 cos=f32/7x13 sin=f32/7x13 positions=i64/1x5 y=f32/2x3x5x41 ; as=bf16
rotary x=f16/2x3x5x41 cos=f32/7x13 sin=f32/7x13 positions=i32/2x5 interleaved=1
rotary x=f32/2x3x5x24/1440:480:96:4 cos=f32/5x12/24:2 sin=bf16/5x12 interleaved=1 y=f32/2x3x5x24/360:24:72:1
rotary_backward dy=f32/1x1x1x4 cos=f32/1x2 sin=f32/1x2 ; dy.is=1,2,3,4 cos.is=0,1 sin.is=1,0 dx.is=3,2,-1,4
rotary_backward dy=f32/2x3x5x8 cos=f32/6x3 sin=f32/6x3 positions=i32/1x5 interleaved=1 ; as=bf16,f64
rotary_backward dy=bf16/2x3x5x8 cos=f32/6x4 sin=f32/6x4 positions=i32/2x5 dx=dy

# cache: slots in any order, negative, beyond; kept elements; quantized, by scales of heads; both layouts; in place
cache_write cache=f32/2x1x2x1 x=f32/1x1x4x1 slots=i32/1x4 ; cache.is=1,2,3,4 x.is=5,6,7,8 slots.is=2,-1,4,0 new_cache.is=8,2,5,4
cache_write cache=e4m3/1x1x2x2 x=f32/1x1x1x2 slots=i64/1x1 scale=f32 ; cache.is=1 x.is=3,-1000 slots.is=1 scale.is=2 new_cache.is=1,1,1.5,-448
cache_write cache=bf16/5x2x4x8 x=bf16/2x2x5x8 slots=i32/2x5 new_cache=cache ; as=f32,i8,f64
cache_write cache=bf16/5x2x4x8/64:8:16:1 x=bf16/2x2x5x8/80:8:16:1 slots=i64/2x5
cache_write cache=e4m3/5x2x4x8 x=bf16/2x2x5x8 slots=i32/2x5 scale=f32/1x2x1x1 new_cache=cache ; scale.fill=near
cache_write cache=i8/5x2x4x8 x=f32/2x2x5x8 slots=i32/2x5 scale=f32/5x2x1x4 ; scale.fill=pos
cache_write cache=f16/5x2x4x8 x=f32/2x2x5x8 slots=i32/2x5 ; fill=signed
cache_write cache=i8/1x1x2x3 x=f32/1x1x2x3 slots=i32/1x2 scale=f32 ; x.is=nan,-1000,5,7,inf,-inf slots.is=1,0 scale.is=2 new_cache.is=4,127,-128,0,-128,2
cache_write cache=e5m2/4x2x3x24 x=f16/2x2x5x24/240:24:48:1 slots=i32/2x5 scale=f32/2x1x3x6 ; scale.fill=pos
cache_write cache=i8/3x2x4x37 x=bf16/1x2x9x37 slots=i64/1x9 scale=f32/3x2x4x1 new_cache=cache ; scale.fill=pos
cache_write cache=e4m3/3x2x4x32/256:32:64:1 x=f32/1x2x9x32 slots=i64/1x9
cache_write cache=bool/3x2x16x70 x=bool/1x2x30x70 slots=i32/1x30
cache_write cache=f32/3x2x4x8 x=f32/0x2x3x8 slots=i32/0x3
cache_write cache=f16/3x2x7x37 x=f16/2x2x5x37 slots=i32/2x5
cache_write cache=f64/3x2x7x6/126:63:9:1 x=f64/1x2x5x6/200:6:40:1 slots=i64/1x5 new_cache=cache

# a chain: the new keys turned and written, then read from their pages
in q f32/1x2x1x8
in x f32/1x1x1x8
in c f32/4x4
in s f32/4x4
in cache f32/3x1x4x8
in slot i32/1x1
in table i32/1x2
in n i32/1
qr = rotary x=q cos=c sin=s
out kept = cache_write cache=cache x=x slots=slot
out y = attention_forward q=qr k=kept pages=table kv_lengths=n value_size=8

# queries and keys of one projection: normed head by head, turned, the keys written into their pages; also wanted themselves; norm before
# the heads are told apart; neighbours, part of a head; without norms; no scales; f16, whose squares do not overflow; one token, one head
in p bf16/2x3x6x32
in gq bf16/1x1x1x32
in gk bf16/1x1x1x32
in c f32/9x16
in s f32/9x16
in at i32/2x3
in cache bf16/3x1x4x32
in slot i32/2x3
pq = slice x=p start=0,0,0,0 length=2,3,4,32
vq = permute x=pq perm=0,2,1,3
tq = rms_norm x=vq scale=gq
out rq = rotary x=tq cos=c sin=s positions=at
pk = slice x=p start=0,0,4,0 length=2,3,1,32
vk = permute x=pk perm=0,2,1,3
tk = rms_norm x=vk scale=gk
rk = rotary x=tk cos=c sin=s positions=at
out kept over cache = cache_write cache=cache x=rk slots=slot

in p f16/1x5x6x128
in gq f16/1x1x1x128
in gk f16/1x1x1x128
in c f16/16x64
in s f16/16x64
in at i32/1x5
in cache f16/4x2x3x128
in slot i32/1x5
pq = slice x=p start=0,0,0,0 length=1,5,2,128
nq = rms_norm x=pq scale=gq
tq = permute x=nq perm=0,2,1,3
out rq = rotary x=tq cos=c sin=s positions=at
pk = slice x=p start=0,0,2,0 length=1,5,2,128
nk = rms_norm x=pk scale=gk
tk = permute x=nk perm=0,2,1,3
out rk = rotary x=tk cos=c sin=s positions=at
out kept over cache = cache_write cache=cache x=rk slots=slot

in p f32/3x1x4x24
in gq f32/1x1x1x24
in gk f32/1x1x1x24
in c f32/9x8
in s f32/9x8
in at i32/3x1
in cache f32/3x1x4x24
in slot i32/3x1
pq = slice x=p start=0,0,0,0 length=3,1,2,24
vq = permute x=pq perm=0,2,1,3
tq = rms_norm x=vq scale=gq eps=0
out rq = rotary x=tq cos=c sin=s positions=at interleaved=1
pk = slice x=p start=0,0,2,0 length=3,1,1,24
vk = permute x=pk perm=0,2,1,3
tk = rms_norm x=vk scale=gk eps=0
rk = rotary x=tk cos=c sin=s positions=at interleaved=1
out kept over cache = cache_write cache=cache x=rk slots=slot

in p bf16/2x4x5x64
in c bf16/9x16
in s bf16/9x16
in at i32/2x4
pq = slice x=p start=0,0,0,0 length=2,4,3,64
vq = permute x=pq perm=0,2,1,3
tq = rms_norm x=vq
out rq = rotary x=tq cos=c sin=s positions=at
pk = slice x=p start=0,0,3,0 length=2,4,1,64
vk = permute x=pk perm=0,2,1,3
tk = rms_norm x=vk
out rk = rotary x=tk cos=c sin=s positions=at

in p f32/1x7x8x256
in c f32/8x32
in s f32/8x32
in at i32/1x7
in cache f32/3x2x4x256
in slot i32/1x7
pq = slice x=p start=0,0,0,0 length=1,7,4,256
tq = permute x=pq perm=0,2,1,3
out rq = rotary x=tq cos=c sin=s positions=at
pk = slice x=p start=0,0,4,0 length=1,7,2,256
tk = permute x=pk perm=0,2,1,3
rk = rotary x=tk cos=c sin=s positions=at
out kept over cache = cache_write cache=cache x=rk slots=slot

in p f32/1x1x3x8
in gq f32/1x1x1x8
in gk f32/1x1x1x8
in c f32/4x4
in s f32/4x4
in at i32/1x1
in cache f32/3x1x4x8
in slot i32/1x1
pq = slice x=p start=0,0,0,0 length=1,1,1,8
nq = rms_norm x=pq scale=gq
tq = permute x=nq perm=0,2,1,3
out rq = rotary x=tq cos=c sin=s positions=at interleaved=1
pk = slice x=p start=0,0,1,0 length=1,1,1,8
nk = rms_norm x=pk scale=gk
tk = permute x=nk perm=0,2,1,3
rk = rotary x=tk cos=c sin=s positions=at interleaved=1
out kept over cache = cache_write cache=cache x=rk slots=slot

in p f16/2x2x3x40
in gq f16/1x1x1x40
in gk f16/1x1x1x40
in c f32/9x10
in s f32/9x10
in at i32/2x2
in cache f16/3x1x4x40
in slot i32/2x2
pq = slice x=p start=0,0,0,0 length=2,2,1,40
vq = permute x=pq perm=0,2,1,3
tq = rms_norm x=vq scale=gq
out rq = rotary x=tq cos=c sin=s positions=at interleaved=1
pk = slice x=p start=0,0,1,0 length=2,2,1,40
vk = permute x=pk perm=0,2,1,3
tk = rms_norm x=vk scale=gk
rk = rotary x=tk cos=c sin=s positions=at interleaved=1
out kept over cache = cache_write cache=cache x=rk slots=slot

# into caches of 8 bits, a scale for each head, or place; without a norm; rounded more than once
in p bf16/2x3x6x32
in gq bf16/1x1x1x32
in gk bf16/1x1x1x32
in c f32/9x16
in s f32/9x16
in at i32/2x3
in cache e4m3/3x2x4x32
in by f32/1x2x1x1
in slot i32/2x3
pq = slice x=p start=0,0,0,0 length=2,3,4,32
vq = permute x=pq perm=0,2,1,3
tq = rms_norm x=vq scale=gq
out rq = rotary x=tq cos=c sin=s positions=at
pk = slice x=p start=0,0,4,0 length=2,3,2,32
vk = permute x=pk perm=0,2,1,3
tk = rms_norm x=vk scale=gk
rk = rotary x=tk cos=c sin=s positions=at
out kept over cache = cache_write cache=cache x=rk slots=slot scale=by ; by.fill=near

in p f32/1x7x8x40
in c f32/8x8
in s f32/8x8
in at i32/1x7
in cache i8/3x2x4x40
in by f32/3x1x4x5
in slot i32/1x7
pq = slice x=p start=0,0,0,0 length=1,7,4,40
tq = permute x=pq perm=0,2,1,3
out rq = rotary x=tq cos=c sin=s positions=at interleaved=1
pk = slice x=p start=0,0,4,0 length=1,7,2,40
tk = permute x=pk perm=0,2,1,3
rk = rotary x=tk cos=c sin=s positions=at interleaved=1
out kept over cache = cache_write cache=cache x=rk slots=slot scale=by ; p.fill=int c.fill=int s.fill=int by.fill=near

# norms of heads where a projection left them; far out, next to nothing, none at all
rms_norm x=bf16/2x4x3x128/7680:128:1280:1 scale=bf16/1x1x1x128 ; as=f32
rms_norm x=f32/2x3x5x24/720:24:72:1 scale=f32/1x3x1x24 y=bf16/2x3x5x24 ; fill=far
rms_norm x=bf16/1x2x9x70/1400:70:140:1 eps=0 ; fill=large
rms_norm x=f32/1x2x3x8/96:8:32:1 eps=0 ; x.fill=zero

# tokens of no sequence before the first of all
attention_backward dy=bf16/1x2x100x16 q=bf16/1x2x100x16 k=bf16/1x1x70x16 v=bf16/1x1x70x16 y=bf16/1x2x100x16 lse=f32/1x2x100 q_starts=i32/2 kv_starts=i32/2 dv=? right=0 ; q_starts.is=64,100 kv_starts.is=0,70 lse.is=3
