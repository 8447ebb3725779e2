/* A whole 2-LSTM with a batch of one, one symbol at a time: there is no other work to share a product with,
 * so matrix times vector and the gates are one function. models/native_stepper.py calls it.
 *
 * Matrices of floats are stored in panels of PANEL rows, [rows / PANEL, columns, PANEL], so that they are
 * read from the first byte to the last. Rows are padded with zeros. Matrices of int8_t are stored row by
 * row, and each row has a scale.
 */
enum { PANEL = 64 };

typedef struct {
    int64_t layers, d, symbols;
    int64_t set;          /* numbers from the weights of one layer to those of the next; 0 if tied */
    int64_t standard;     /* h' = g_o tanh(m') instead of tanh(g_o m') */
    int64_t reads_memory; /* scores are read from hidden and memory vectors */
    const void *weight;   /* [8 d, 2 d] for each set: gates u, f, o, c of time, then of depth */
    const float *scale;   /* [sets, 8 d] if the weights are int8_t; null if they are floats */
    const float *bias;    /* [sets, 8 d] */
    const float *entering;         /* [symbols, 2, d]: hidden, then memory */
    const void *score_weight;      /* [symbols, d or 2 d] */
    const float *score_scale;      /* [symbols] or null */
    const float *score_bias;       /* [symbols] */
    float *hidden, *memory;        /* [layers, d]: the state */
    float *x;                      /* [3, d]: hidden vectors of time and depth, memory of depth */
    int16_t *rounded;              /* [2 d]: what a product of int8_t reads */
    float *gates;                  /* [8 d], padded */
    float *scores;                 /* [symbols], padded */
} Stepper;

static void multiply_panels(int64_t rows, int64_t columns, const float *w, const float *x, float *y) {
    for (int64_t row = 0; row < rows; row += PANEL) {
        Vector sum[PANEL / LANES] = {0};
        for (int64_t k = 0; k < columns; k++, w += PANEL) {
            _Pragma("GCC unroll 16") for (int i = 0; i < PANEL / LANES; i++)
                sum[i] += x[k] * ((const Vector *)w)[i];
        }
        memcpy(y + row, sum, sizeof sum);
    }
}

/* x as integers times the scale that is returned, so that products are of integers only. They are so small
 * that a sum of products with int8_t does not overflow. */
static float round_vector(int64_t columns, const float *x, int16_t *rounded) {
    const int64_t most = INT32_MAX / (INT8_MAX * columns);
    const float limit = most < INT16_MAX ? most : INT16_MAX;
    float largest = 1e-30f; /* not 0, which has no inverse */
    _Pragma("omp simd reduction(max : largest)") for (int64_t k = 0; k < columns; k++)
        largest = fabsf(x[k]) > largest ? fabsf(x[k]) : largest;
    const float inverse = limit / largest;
    SIMD for (int64_t k = 0; k < columns; k++)
        rounded[k] = (int16_t)(x[k] * inverse + copysignf(0.5f, x[k]));
    return largest / limit;
}

static void multiply_rounded(int64_t rows, int64_t columns, const int8_t *w, const float *scale,
                             const int16_t *x, float x_scale, float *y) {
    for (int64_t row = 0; row < rows; row++, w += columns) {
        int32_t sum = 0;
        for (int64_t k = 0; k < columns; k++) sum += (int16_t)w[k] * x[k];
        y[row] = sum * (scale[row] * x_scale);
    }
}

/* y = W x, by the rows of W. */
static void multiply_vector(const Stepper *s, int64_t rows, int64_t columns, const void *w, const float *scale,
                            const float *x, float *y) {
    if (scale) {
        const float x_scale = round_vector(columns, x, s->rounded);
        multiply_rounded(rows, columns, w, scale, s->rounded, x_scale, y);
    } else {
        multiply_panels(rows, columns, w, x, y);
    }
}

static void step_lstm(int64_t d, int64_t standard, const float *g, const float *bias, float *h, float *m) {
    SIMD for (int64_t i = 0; i < d; i++) {
        const float u = sigmoid_float(g[i] + bias[i]), f = sigmoid_float(g[d + i] + bias[d + i]);
        const float o = sigmoid_float(g[2 * d + i] + bias[2 * d + i]);
        const float c = tanh_float(g[3 * d + i] + bias[3 * d + i]);
        m[i] = f * m[i] + u * c;
        h[i] = standard ? o * tanh_float(m[i]) : tanh_float(o * m[i]);
    }
}

void step(const Stepper *s, int64_t symbol) {
    const int64_t d = s->d;
    memcpy(s->x + d, s->entering + symbol * 2 * d, 2 * d * sizeof(float));
    for (int64_t layer = 0; layer < s->layers; layer++) {
        const int64_t set = s->set ? layer : 0;
        float *h = s->hidden + layer * d, *m = s->memory + layer * d;
        const float *bias = s->bias + set * 8 * d, *scale = s->scale ? s->scale + set * 8 * d : 0;
        const int64_t bytes = scale ? sizeof(int8_t) : sizeof(float);
        memcpy(s->x, h, d * sizeof(float));
        multiply_vector(s, 8 * d, 2 * d, (const char *)s->weight + set * s->set * bytes, scale, s->x, s->gates);
        step_lstm(d, s->standard, s->gates, bias, h, m);
        step_lstm(d, s->standard, s->gates + 4 * d, bias + 4 * d, s->x + d, s->x + 2 * d);
    }
    const int64_t read = s->reads_memory ? 2 * d : d;
    multiply_vector(s, s->symbols, read, s->score_weight, s->score_scale, s->x + d, s->scores);
    for (int64_t i = 0; i < s->symbols; i++) s->scores[i] += s->score_bias[i];
}
