/* Walkers on a ring of places that is cut into one stretch per rank. A walker goes a random number of steps in one
 * direction; where it leaves a rank's stretch it is handed to the next one.
 *
 *   random_walk PLACES MAX_STEPS WALKERS_PER_RANK
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 4 || atoi(argv[1]) < size || atoi(argv[2]) < 1 || atoi(argv[3]) < 1) {
    if (rank == 0) fprintf(stderr, "usage: random_walk PLACES MAX_STEPS WALKERS_PER_RANK, with at least one place per rank\n");
    MPI_Finalize();
    return 2;
  }
  const int places = atoi(argv[1]), longest = atoi(argv[2]), each = atoi(argv[3]);
  const int begin = (int)((long)places * rank / size), end = (int)((long)places * (rank + 1) / size);
  const int capacity = each * size;
  int* here = calloc((size_t)capacity * 2, sizeof(int)); /* pairs of place and steps left */
  int* leaving = calloc((size_t)capacity * 2, sizeof(int));
  int walkers = 0, finished = 0, live = 0, wanted = 0, walked = 0;
  srand((unsigned)(rank + 1));
  for (int i = 0; i < each; ++i) {
    here[2 * walkers] = begin;
    here[2 * walkers + 1] = rand() % longest + 1;
    wanted += here[2 * walkers++ + 1];
  }
  do {
    int out = 0;
    for (int i = 0; i < walkers; ++i) {
      int place = here[2 * i], left = here[2 * i + 1];
      while (left > 0 && place < end) ++place, --left, ++walked;
      if (place < end) {
        ++finished;
      } else { /* it stands on the first place of the next rank, perhaps with no step left */
        leaving[2 * out] = place % places;
        leaving[2 * out++ + 1] = left;
      }
    }
    MPI_Status status;
    MPI_Sendrecv(leaving, 2 * out, MPI_INT, (rank + 1) % size, 0, here, 2 * capacity, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &walkers);
    walkers /= 2;
    MPI_Allreduce(&walkers, &live, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  } while (live > 0);
  int mine[3] = {finished, walked, wanted}, total[3];
  MPI_Reduce(mine, total, 3, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  printf("rank %d of %d on %s\n", rank, size, host);
  if (rank == 0) printf("%d walkers finished after %d steps of %d\n", total[0], total[1], total[2]);
  free(here);
  free(leaving);
  MPI_Finalize();
  return 0;
}
