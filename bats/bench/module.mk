# The bench: the same work under glibc's heap, others', and ours.
#
#	make bench              tables and the bars are printed; numbers and a plot are in build/bench
#
#	BENCH='programs large'  groups of works, or works; BENCH=list lists them. Unless told, all but
#	                        those that take many minutes
#	FULL=1                  those as well
#	RUNS=5                  rounds; in each, every allocator runs once. (The sweeps and the
#	                        article's table have three at most, unless BENCH names them.)
#	PEERS='NAME=/path/lib.so,VATALLOC_OPTIONS=mode=count OTHER=/path/other.so'
#	                        more allocators; a vatalloc without options runs in both modes
#	ALLOCATORS='address'    only these, and glibc and jemalloc
#	VATALLOC_LIB=/path      another build of the library
#	QUICK=1                 run times only
#	NICE=-15                ahead of whatever else the machine does
#	BENCH_OUTPUT=DIRECTORY  where the numbers go
#
#	make bench-results      write RESULTS.md and its plot from the numbers in build/bench
#
# What only the bench needs is installed by `make bench`.

DEPS_BENCH := libjemalloc2 libmimalloc-dev libgoogle-perftools-dev python3 python3-matplotlib \
	valgrind strace nginx-light apache2-utils wrk redis-server redis-tools postgresql sqlite3 perl git

BENCH_OUTPUT = $(O)/bench
BENCH_TOOLS := $(addprefix $(O)/bench/tools/,measure micro factor trees strings count.so)
BENCH_FLAGS := -O2 -g -pthread -Ilib -D_GNU_SOURCE -Wall -Wextra -fno-builtin-malloc \
	-fno-builtin-free -fno-builtin-realloc -fno-builtin-calloc -MMD -MP

$(O)/bench/tools/%.so: bats/bench/%.c $(O)/flags
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(BENCH_FLAGS) -MF $@.d -shared -fPIC -o $@ $<

$(O)/bench/tools/%: bats/bench/%.c $(O)/flags
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(BENCH_FLAGS) -MF $@.d -o $@ $<

$(O)/bench/tools/%: bats/bench/%.cc $(O)/flags
	$(call say,CXX,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(BENCH_FLAGS) -MF $@.d -o $@ $<

-include $(BENCH_TOOLS:=.d)

bench-tools: $(BENCH_TOOLS)
	@:

# A second make, as for check.
bench:
	$(Q)bats/setup/deps $(sort $(DEPS_BUILD)) -- $(sort $(DEPS_BENCH))
	$(Q)$(MAKE) --no-print-directory $(if $(VATALLOC_LIB),,lib) bench-tools
	$(Q)BENCH='$(BENCH)' RUNS='$(RUNS)' PEERS='$(PEERS)' ALLOCATORS='$(ALLOCATORS)' \
		VATALLOC_LIB='$(VATALLOC_LIB)' QUICK='$(QUICK)' FULL='$(FULL)' NICE='$(NICE)' \
		bats/bench/bench $(O)/bench/tools $(BENCH_OUTPUT)

bench-results:
	$(Q)bats/bench/results $(BENCH_OUTPUT) bats/bench

.PHONY: bench bench-tools bench-results
