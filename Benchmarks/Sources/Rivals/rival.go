// Go at the rows for which it has a counterpart. It does not use the harness in C, since calls of C change how Go's
// runtime schedules goroutines; the measuring loop and the checks below do the same, and so does command.go.
package main

import (
	"runtime"
	"sync"
	"time"
)

// The quickest of three passes after one warm-up pass.
func nanosecondsPerOperation(operations int, pass func() time.Duration) float64 {
	pass()
	best := pass()
	for i := 0; i < 2; i++ {
		if next := pass(); next < best {
			best = next
		}
	}
	return float64(best.Nanoseconds()) / float64(operations)
}

// How many counters are at one; clears them all.
func takeMarkedOnce(slots []int32) int {
	once := 0
	for i := range slots {
		if slots[i] == 1 {
			once++
		}
		slots[i] = 0
	}
	return once
}

// Fan-out: one goroutine starts goroutines of a WaitGroup, then waits for them.
func fanOut(count int) measurement {
	slots := make([]int32, count)
	value := nanosecondsPerOperation(count, func() time.Duration {
		var group sync.WaitGroup
		start := time.Now()
		for i := 0; i < count; i++ {
			group.Add(1)
			go func(i int) {
				slots[i]++
				group.Done()
			}(i)
		}
		group.Wait()
		elapsed := time.Since(start)
		verify(takeMarkedOnce(slots), count, "goroutines that ran exactly once")
		return elapsed
	})
	return measurement{value, count, count}
}

// Hop: two goroutines pass a number to and fro over two channels.
func hop(count int) measurement {
	hops := 0
	value := nanosecondsPerOperation(count, func() time.Duration {
		hops = 0
		even, odd := make(chan int, 1), make(chan int, 1)
		done := make(chan struct{})
		player := func(in <-chan int, out chan<- int) {
			for remaining := range in {
				hops++
				if remaining == 1 {
					close(done)
					return
				}
				out <- remaining - 1
			}
		}
		start := time.Now()
		go player(even, odd)
		go player(odd, even)
		even <- count
		<-done
		elapsed := time.Since(start)
		// Ends the player that still waits.
		close(even)
		close(odd)
		verify(hops, count, "hops, one after the other")
		return elapsed
	})
	return measurement{value, count, hops}
}

// Go has no parallel loop of its own; this is how one is written by hand: a range for each core.
// Not inlined, so that the body is a function called for each index, as in a library.
//
//go:noinline
func parallelFor(count int, body func(int)) {
	workers := runtime.GOMAXPROCS(0)
	var group sync.WaitGroup
	for worker := 0; worker < workers; worker++ {
		group.Add(1)
		go func(from, to int) {
			for i := from; i < to; i++ {
				body(i)
			}
			group.Done()
		}(count*worker/workers, count*(worker+1)/workers)
	}
	group.Wait()
}

func parallelLoop(count int) measurement {
	value := nanosecondsPerOperation(count, func() time.Duration {
		start := time.Now()
		parallelFor(count, func(int) {})
		return time.Since(start)
	})
	slots := make([]int32, count)
	parallelFor(count, func(i int) { slots[i]++ })
	visited := takeMarkedOnce(slots)
	verify(visited, count, "indices visited exactly once")
	return measurement{value, count, visited}
}

var rows = []row{
	{"global-async-group-wait", "goroutines and a WaitGroup", 500_000, fanOut},
	{"concurrent-perform-empty-body", "a range for each core, 10 million indices", 10_000_000, parallelLoop},
	{"hop-between-serial-queues", "two goroutines, two channels", 300_000, hop},
}

func main() { command(rows) }
