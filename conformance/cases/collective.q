# Collectives of a context without a group: of one rank. Those of several are in ranks/, for `quern-conform --ranks N`.
all_reduce x=f32/7x5
all_reduce x=[f64/3,f16/17,bf16/2x9] reduction=max
all_reduce x=[f32/33,f16/5] scale=0.5 y=x
all_reduce x=f64/12 scale=f64 reduction=avg
all_reduce x=[i8/9,u8/4,i32/5,i64/3] reduction=prod
reduce_scatter x=[f32/6x4,bf16/3x7/1:3] reduction=min
reduce_scatter x=f16/20 scale=-3 ; fill=signed
all_gather x=[f32/4x3,bool/5,e4m3/8]
broadcast x=[i64/2,f16/3x4x5] y=x
all_to_all x=[f64/6,u8/2x11]
send x=[f32/9,bf16/4] y=x
recv x=f32/3x3/1:3
