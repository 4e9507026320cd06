# quern-bench and its workloads.
