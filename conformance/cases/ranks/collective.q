# Collectives of several ranks, for `quern-conform --ranks N`: lines that say `ranks` are run where N is that, those with a root or peer
# where there is one. `send` is run by rank 0, and its recv by the peer. Settings: fill.

# all_reduce: every dtype and reduction, lists, strides, one element, more than a slot of shm's and a chunk
# of mpi's (2^20 bytes, of all shares), and not a multiple of it
all_reduce x=f32/1
all_reduce x=f32/7x5
all_reduce x=f32/3000
all_reduce x=f64/129
all_reduce x=f16/1001
all_reduce x=bf16/4097
all_reduce x=[f64/3,f16/17,bf16/2x9,f32/1,i32/7]
all_reduce x=[f32/33,f16/5] y=x
all_reduce x=f32/70000
all_reduce x=[f32/65537,f32/3,f16/5021] y=x
all_reduce x=bf16/140001
all_reduce x=f32/262209 y=x ; fill=signed
all_reduce x=f64/363x367/1:363 reduction=max ; fill=signed
all_reduce x=f32/6x35/1:6
all_reduce x=f32/5x7/0:1
all_reduce x=f32/4x6x5/1:4:24 y=f32/4x6x5/60:10:2
all_reduce x=f32/0
all_reduce x=[f32/0,f32/5]
all_reduce x=[f32/257,f16/300] reduction=avg
all_reduce x=f32/100 scale=0.25
all_reduce x=[f32/100,bf16/9] scale=f32
all_reduce x=f64/5000 scale=f64 reduction=avg y=x
all_reduce x=[f32/259,f16/64,bf16/31,f64/12] reduction=max
all_reduce x=[f32/259,f16/64,bf16/31,f64/12] reduction=min
all_reduce x=[f32/259,f16/64,bf16/31,f64/12] reduction=prod ; fill=near
all_reduce x=[i8/90,u8/41,i32/5,i64/3]
all_reduce x=[i8/90,u8/41,i32/5,i64/3] reduction=prod
all_reduce x=[i8/9000,u8/41,i32/5,i64/3] reduction=max
all_reduce x=[i8/90,u8/41,i32/5,i64/3] reduction=min y=x

broadcast x=f32/9
broadcast x=[f32/9,bool/7,e4m3/300,i64/1] root=1
broadcast x=f16/140000 root=1 y=x
broadcast x=f64/131203 root=1
broadcast x=f32/6x7/1:6 root=0 y=f32/6x7
broadcast x=bf16/12 root=2
broadcast x=u8/1000 root=3 y=x

send x=f32/9 peer=1
send x=[f32/9,bool/7,e5m2/300,i64/1] peer=1 y=x
send x=f32/20000 peer=1
send x=f64/131203 peer=1
send x=f32/6x7/1:6 peer=1 y=f32/6x7
send x=f16/40001 peer=2 y=x
send x=i8/3 peer=3

reduce_scatter x=f32/2 ranks=2
reduce_scatter x=[f32/6x35,f16/4x3,i32/10] ranks=2
reduce_scatter x=bf16/140000 ranks=2 reduction=avg
reduce_scatter x=f32/6x7/1:6 ranks=2 reduction=max
reduce_scatter x=f64/600 ranks=2 scale=3
reduce_scatter x=f32/3x5 ranks=3
reduce_scatter x=[f16/45002x3/1:45002] ranks=2
reduce_scatter x=[f32/400x5,f16/4] ranks=4 scale=f32
reduce_scatter x=[u8/16,i64/8] ranks=4 reduction=prod
reduce_scatter x=f32/200000 ranks=4 reduction=min
reduce_scatter x=bf16/262160 ranks=4 ; fill=signed

all_gather x=f32/1 ranks=2
all_gather x=[f32/3x35,bool/4,e4m3/10] ranks=2
all_gather x=f16/140001 ranks=2
all_gather x=f32/6x7/1:6 ranks=2
all_gather x=f32/6x7 ranks=2 y=f32/12x7/1:12
all_gather x=i64/3x5 ranks=3
all_gather x=[f32/100x5,f16/1] ranks=4
all_gather x=u8/270000 ranks=4
all_gather x=f64/32801 ranks=4
all_gather x=f64/180x183/1:180 ranks=4

all_to_all x=f32/2 ranks=2
all_to_all x=[f32/6x35,bool/4,e5m2/10] ranks=2
all_to_all x=f16/140002 ranks=2
all_to_all x=f32/6x7/1:6 ranks=2
all_to_all x=f32/6x7 ranks=2 y=f32/6x7/1:6
all_to_all x=i64/3x5 ranks=3
all_to_all x=[f32/100x5,f16/4] ranks=4
all_to_all x=u8/270000 ranks=4
all_to_all x=f64/131204 ranks=4
all_to_all x=f64/364x363/1:364 ranks=4
