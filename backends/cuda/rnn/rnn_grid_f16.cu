/* rnn_grid_f16.cu -- the kernels of rnn_grid.cuh on f16. */
#include "rnn_grid.cuh"

#define FORWARD(tiles, blocks) rnn_grid_forward_of<rnn_mma<false, tiles, blocks>>(256 * blocks, false)
#define GRADIENT(tiles, blocks) rnn_grid_backward_of<rnn_mma<false, tiles, blocks>>(256 * blocks, false)
const cuda_rnn_grid_kernel cuda_rnn_grid_f16[] = {
  FORWARD(2, 1), FORWARD(4, 1), FORWARD(2, 2), FORWARD(4, 2), FORWARD(2, 4), FORWARD(4, 4),
  GRADIENT(1, 4), GRADIENT(1, 8), GRADIENT(1, 16), {} };
