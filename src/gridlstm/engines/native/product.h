/* The matrix products of a step: out = x A for rows x, with a matrix A of K rows and N columns for each
 * weight set. Libraries lay A out anew in every call, which takes longer than the product itself if there are
 * few rows. Here it is done once (`pack`): in panels of PANEL_COLUMNS columns, [panels, K, PANEL_COLUMNS],
 * padded with zeros, each read from its first byte to its last.
 *
 * A tile is up to TILE_ROWS rows of the result in one panel. Its sums stay in registers.
 *
 * The gradient of weights, a product over the rows of all steps, is made of the same tiles.
 */
#if defined(__AVX512F__)
enum { LANES = 16, TILE_ROWS = 12 };
#elif defined(__AVX__)
enum { LANES = 8, TILE_ROWS = 6 };
#else
enum { LANES = 4, TILE_ROWS = 6 };
#endif
#ifdef _OPENMP
int omp_get_thread_num(void);
#define THREAD omp_get_thread_num()
#else
#define THREAD 0
#endif
enum { PANEL_COLUMNS = 2 * LANES, DEPTH = 1024 }; /* DEPTH rows of a panel stay in the cache of a core. */

/* As wide as a register: compilers keep wider vectors in memory. */
typedef float Vector __attribute__((vector_size(4 * LANES), aligned(4)));

#define EACH_1(X) X(0)
#define EACH_2(X) EACH_1(X) X(1)
#define EACH_3(X) EACH_2(X) X(2)
#define EACH_4(X) EACH_3(X) X(3)
#define EACH_5(X) EACH_4(X) X(4)
#define EACH_6(X) EACH_5(X) X(5)
#define EACH_7(X) EACH_6(X) X(6)
#define EACH_8(X) EACH_7(X) X(7)
#define EACH_9(X) EACH_8(X) X(8)
#define EACH_10(X) EACH_9(X) X(9)
#define EACH_11(X) EACH_10(X) X(10)
#define EACH_12(X) EACH_11(X) X(11)

#define SUMS(r) Vector left##r = {0}, right##r = {0};
#define ADD(r)                                \
    {                                         \
        const float factor = x[r * x_pitch];  \
        left##r += factor * left;             \
        right##r += factor * right;           \
    }
#define WRITE(r) write_tile(out + r * out_pitch, columns, first, left##r, right##r);

/* `first`: whether these are the first sums for this row; otherwise they are added. */
static inline void write_tile(float *out, int64_t columns, int64_t first, Vector left, Vector right) {
    float sums[PANEL_COLUMNS];
    float *to = columns == PANEL_COLUMNS ? out : sums;
    if (!first) {
        if (to == sums) memcpy(sums, out, columns * sizeof(float));
        left += *(Vector *)to;
        right += *(Vector *)(to + LANES);
    }
    *(Vector *)to = left;
    *(Vector *)(to + LANES) = right;
    if (to == sums) memcpy(out, sums, columns * sizeof(float));
}

#define TILE(R)                                                                                              \
    static void tile_##R(int64_t depth, const float *restrict panel, const float *restrict x, int64_t x_pitch, \
                         int64_t x_step, float *restrict out, int64_t out_pitch, int64_t columns,            \
                         int64_t first) {                                                                    \
        EACH_##R(SUMS)                                                                                       \
        for (int64_t k = 0; k < depth; k++, x += x_step, panel += PANEL_COLUMNS) {                           \
            const Vector left = *(const Vector *)panel, right = *(const Vector *)(panel + LANES);            \
            EACH_##R(ADD)                                                                                    \
        }                                                                                                    \
        EACH_##R(WRITE)                                                                                      \
    }
TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6)
#ifdef __AVX512F__
TILE(7) TILE(8) TILE(9) TILE(10) TILE(11) TILE(12)
#endif

typedef void Tile(int64_t, const float *, const float *, int64_t, int64_t, float *, int64_t, int64_t, int64_t);
static Tile *const tiles[] = {
    0, tile_1, tile_2, tile_3, tile_4, tile_5, tile_6,
#ifdef __AVX512F__
    tile_7, tile_8, tile_9, tile_10, tile_11, tile_12,
#endif
};

/* One panel of the result, of any number of rows: x has elements x[row * x_pitch + k * x_step]. */
static void multiply_tiles(int64_t rows, int64_t depth, const float *panel, const float *x, int64_t x_pitch,
                           int64_t x_step, float *out, int64_t out_pitch, int64_t columns, int64_t first) {
    const int64_t count = (rows + TILE_ROWS - 1) / TILE_ROWS;
    for (int64_t i = 0, r = 0, height; i < count; i++, r += height) {
        height = (rows - r) / (count - i); /* As equal as possible: tiles of few rows are slower. */
        tiles[height](depth, panel, x + r * x_pitch, x_pitch, x_step, out + r * out_pitch, out_pitch, columns, first);
    }
}

/* group: for each weight set in use, its number, and its first and last block; a block has `batch` rows. */
void multiply(int64_t groups, const int64_t *group, int64_t batch, int64_t K, int64_t N, const float *panels,
              const float *x, int64_t x_pitch, float *out, int64_t out_pitch, int64_t threads) {
    const int64_t count = (N + PANEL_COLUMNS - 1) / PANEL_COLUMNS, blocks = group[3 * groups - 1];
    const int64_t parallel = threads > 1 && blocks * batch * K * N > 1 << 20;
    _Pragma("omp parallel for schedule(static) num_threads(threads) if (parallel)")
    for (int64_t i = 0; i < groups * count; i++) {
        const int64_t *g = group + i / count * 3, p = i % count, c = p * PANEL_COLUMNS, row = g[1] * batch;
        const float *panel = panels + (g[0] * count + p) * K * PANEL_COLUMNS;
        for (int64_t k = 0; k < K; k += DEPTH)
            multiply_tiles((g[2] - g[1]) * batch, K - k < DEPTH ? K - k : DEPTH, panel + k * PANEL_COLUMNS,
                           x + row * x_pitch + k, x_pitch, 1, out + row * out_pitch + c, out_pitch,
                           N - c < PANEL_COLUMNS ? N - c : PANEL_COLUMNS, k == 0);
    }
}

int64_t panel_columns(void) { return PANEL_COLUMNS; }

/* Copies a strip of rows; `width` is the distance of the copied rows. */
static void copy_strip(int64_t rows, int64_t columns, const float *from, int64_t pitch, float *to, int64_t width) {
    for (int64_t r = 0; r < rows; r++, from += pitch, to += width) memcpy(to, from, columns * sizeof(float));
}

/* A has elements a[set * set_pitch + k * row_pitch + column * column_pitch]. */
void pack(int64_t sets, int64_t K, int64_t N, const float *a, int64_t set_pitch, int64_t row_pitch,
          int64_t column_pitch, float *panels, int64_t threads) {
    const int64_t count = (N + PANEL_COLUMNS - 1) / PANEL_COLUMNS;
    _Pragma("omp parallel for schedule(static) num_threads(threads) if (threads > 1 && sets * K * N > 1 << 18)")
    for (int64_t i = 0; i < sets * count; i++) {
        const int64_t c = i % count * PANEL_COLUMNS, columns = N - c < PANEL_COLUMNS ? N - c : PANEL_COLUMNS;
        const float *from = a + i / count * set_pitch + c * column_pitch;
        float *to = panels + i * K * PANEL_COLUMNS;
        if (column_pitch == 1 && columns == PANEL_COLUMNS) {
            copy_strip(K, columns, from, row_pitch, to, PANEL_COLUMNS);
            continue;
        }
        for (int64_t first = 0; first < K; first += LANES) { /* In squares: one side of them is transposed. */
            const int64_t last = K - first < LANES ? K : first + LANES;
            for (int64_t j = 0; j < PANEL_COLUMNS; j++)
                for (int64_t k = first; k < last; k++)
                    to[k * PANEL_COLUMNS + j] = j < columns ? from[k * row_pitch + j * column_pitch] : 0;
        }
    }
}

/* The gradient of weights: out = left^T right, or added to out, for `rows` rows of `left` with M columns and of
 * `right` with N. GRADIENT_ROWS rows are copied at a time, those of `right` into panels and those of `left` into
 * strips of STRIP columns, so that tiles read contiguous memory. `space` holds both, see `gradient_space`.
 */
enum { GRADIENT_ROWS = 256, STRIP = 48 };

int64_t gradient_space(int64_t N, int64_t threads) {
    return GRADIENT_ROWS * ((N + PANEL_COLUMNS - 1) / PANEL_COLUMNS * PANEL_COLUMNS + threads * STRIP);
}

void multiply_transposed(int64_t rows, int64_t M, int64_t N, const float *left, int64_t left_pitch, const float *right,
                         int64_t right_pitch, float *out, int64_t out_pitch, int64_t adds, float *space,
                         int64_t threads) {
    const int64_t panels = (N + PANEL_COLUMNS - 1) / PANEL_COLUMNS, strips = (M + STRIP - 1) / STRIP;
    float *const strip_space = space + panels * PANEL_COLUMNS * GRADIENT_ROWS;
    const int64_t parallel = threads > 1 && rows * M * N > 1 << 20;
    _Pragma("omp parallel num_threads(threads) if (parallel)")
    for (int64_t row = 0; row < rows; row += GRADIENT_ROWS) {
        const int64_t depth = rows - row < GRADIENT_ROWS ? rows - row : GRADIENT_ROWS;
        _Pragma("omp for schedule(static)")
        for (int64_t p = 0; p < panels; p++) {
            const int64_t c = p * PANEL_COLUMNS, columns = N - c < PANEL_COLUMNS ? N - c : PANEL_COLUMNS;
            copy_strip(depth, columns, right + row * right_pitch + c, right_pitch,
                       space + p * PANEL_COLUMNS * GRADIENT_ROWS, PANEL_COLUMNS);
        }
        _Pragma("omp for schedule(static)")
        for (int64_t i = 0; i < strips; i++) {
            const int64_t m = i * STRIP, width = M - m < STRIP ? M - m : STRIP;
            float *strip = strip_space + THREAD * STRIP * GRADIENT_ROWS;
            copy_strip(depth, width, left + row * left_pitch + m, left_pitch, strip, STRIP);
            for (int64_t p = 0; p < panels; p++) {
                const int64_t c = p * PANEL_COLUMNS, columns = N - c < PANEL_COLUMNS ? N - c : PANEL_COLUMNS;
                multiply_tiles(width, depth, space + p * PANEL_COLUMNS * GRADIENT_ROWS, strip, 1, STRIP,
                               out + m * out_pitch + c, out_pitch, columns, row == 0 && !adds);
            }
        }
    }
}
