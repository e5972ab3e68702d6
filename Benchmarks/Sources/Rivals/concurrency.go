// Go at the rows of Swift Concurrency (bench-concurrency) whose shape it has. Like rival.go it calls no C, which would
// change how goroutines are scheduled; passes, operations and checks are those of the Swift rows.
package main

import (
	"context"
	"runtime"
	"sync"
	"time"
)

func sumOfIndices(count int) int { return count * (count - 1) / 2 }

// Starts the goroutines of a group. The function that it returns waits for all, and adds up what they return.
func start(size int, body func(int) int) func() int {
	results := make([]int, size)
	var group sync.WaitGroup
	group.Add(size)
	for i := 0; i < size; i++ {
		go func(i int) {
			results[i] = body(i)
			group.Done()
		}(i)
	}
	return func() int {
		group.Wait()
		sum := 0
		for _, result := range results {
			sum += result
		}
		return sum
	}
}

func index(i int) int { return i }

// A goroutine that computes one value.
func task(body func() int) <-chan int {
	value := make(chan int, 1)
	go func() { value <- body() }()
	return value
}

func compute(duration time.Duration) {
	for start := time.Now(); time.Since(start) < duration; {
	}
}

func most(a, b int) int {
	if a > b {
		return a
	}
	return b
}

// MARK: Tasks

func fanOut(count int) {
	verify(start(count, index)(), sumOfIndices(count), "the sum of the results")
}

func groupsOfThousand(count int) {
	groups, sum := most(count/1000, 1), 0
	for i := 0; i < groups; i++ {
		sum += start(1000, index)()
	}
	verify(sum, groups*sumOfIndices(1000), "the sum of the results")
}

func twentyMicrosecondTasks(count int) {
	groups, done := most(count/16, 1), 0
	for i := 0; i < groups; i++ {
		done += start(16, func(int) int {
			compute(20 * time.Microsecond)
			return 1
		})()
	}
	verify(done, groups*16, "tasks")
}

func asyncLet(count int) {
	sum := 0
	for i := 0; i < count/2; i++ {
		even := task(func() int { return 2 * i })
		odd := task(func() int { return 2*i + 1 })
		sum += <-even + <-odd
	}
	verify(sum, sumOfIndices(count/2*2), "the sum of both")
}

func tree(depth int) int {
	if depth == 0 {
		return 1
	}
	left := task(func() int { return tree(depth - 1) })
	right := task(func() int { return tree(depth - 1) })
	return <-left + <-right + 1
}

func asyncLetTree(count int) {
	trees, functions := most(count/2047, 1), 0
	for i := 0; i < trees; i++ {
		functions += tree(10)
	}
	verify(functions, trees*2047, "functions")
}

func detachedTask(count int) { detached(count, 0) }

func detached(count int, work time.Duration) {
	sum := 0
	for i := 0; i < count; i++ {
		sum += <-task(func() int {
			compute(work)
			return i
		})
		compute(work)
	}
	verify(sum, sumOfIndices(count), "the sum of the results")
}

func yields(count int) {
	yields := start(4, func(int) int {
		yields := 0
		for ; yields < count/4; yields++ {
			runtime.Gosched()
		}
		return yields
	})()
	verify(yields, count/4*4, "yields")
}

func sleepStorm(count int) {
	awake := start(count, func(int) int {
		asleep := time.Now()
		time.Sleep(time.Millisecond)
		if time.Since(asleep) < time.Millisecond {
			return 0
		}
		return 1
	})()
	verify(awake, count, "tasks that did not wake early")
}

func cancelled(count int) {
	group, cancel := context.WithCancel(context.Background())
	wait := start(count, func(int) int {
		hour := time.NewTimer(time.Hour)
		defer hour.Stop()
		select {
		case <-hour.C:
			return 0
		case <-group.Done():
			return 1
		}
	})
	cancel()
	verify(wait(), count, "cancelled tasks")
}

// A goroutine that runs functions one after the other stands for the serial queue.
func continuation(count int) {
	queue := make(chan func(), 1)
	go func() {
		for callback := range queue {
			callback()
		}
	}()
	sum := 0
	for i := 0; i < count; i++ {
		answer := make(chan int, 1)
		queue <- func() { answer <- i }
		sum += <-answer
	}
	close(queue)
	verify(sum, sumOfIndices(count), "the sum of the callbacks' values")
}

// MARK: Actors

// A goroutine that answers requests one after the other stands for the actor.
func contendedActor(callers int) func(int) {
	return func(count int) {
		strokes := 0
		requests := make(chan chan struct{}, callers)
		go func() {
			for answer := range requests {
				strokes++
				answer <- struct{}{}
			}
		}()
		start(callers, func(int) int {
			answer := make(chan struct{}, 1)
			for call := 0; call < count/callers; call++ {
				requests <- answer
				<-answer
			}
			return 0
		})()
		close(requests)
		verify(strokes, count/callers*callers, "strokes that excluded each other")
	}
}

// MARK: Hand-overs

// The channel has room for all numbers, as the stream has.
func stream(count int) {
	numbers := make(chan int, count)
	reader := task(func() int {
		sum := 0
		for number := range numbers {
			sum += number
		}
		return sum
	})
	for i := 0; i < count; i++ {
		numbers <- i
	}
	close(numbers)
	verify(<-reader, sumOfIndices(count), "the sum of the numbers read")
}

// A goroutine with a thread of its own stands for the main actor.
func onMainActor(work time.Duration) func(int) {
	return func(count int) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		detached(count, work)
	}
}

// MARK: Program

var rows = []row{
	{"task-group-fan-out", "goroutines and a WaitGroup", 1_000_000, quickest(fanOut)},
	{"task-groups-of-thousand", "goroutines and a WaitGroup", 200_000, quickest(groupsOfThousand)},
	{"twenty-microsecond-tasks", "goroutines and a WaitGroup", 16_000, quickest(twentyMicrosecondTasks)},
	{"async-let", "two goroutines, a channel for each", 200_000, quickest(asyncLet)},
	{"async-let-tree", "the same in trees", 204_700, quickest(asyncLetTree)},
	{"detached-task", "a goroutine and a channel", 200_000, quickest(detachedTask)},
	{"task-yield", "Gosched", 400_000, quickest(yields)},
	{"task-sleep-storm", "time.Sleep", 100_000, quickest(sleepStorm)},
	{"cancelled-tasks", "a context, and a timer for each", 10_000, quickest(cancelled)},
	{"continuation-from-queue", "a goroutine that runs functions, a channel for each answer", 50_000, quickest(continuation)},
	{"contended-actor-2", "a goroutine that answers requests", 400_000, quickest(contendedActor(2))},
	{"contended-actor-8", "a goroutine that answers requests", 400_000, quickest(contendedActor(8))},
	{"contended-actor-64", "a goroutine that answers requests", 400_000, quickest(contendedActor(64))},
	{"async-stream", "a channel with room for all", 400_000, quickest(stream)},
	{"detached-value-on-main-actor", "LockOSThread, a goroutine and a channel", 50_000, quickest(onMainActor(0))},
	{"detached-work-on-main-actor", "the same, with work", 10_000, quickest(onMainActor(5 * time.Microsecond))},
}

// The quickest of three passes after a warm-up pass of a tenth.
func quickest(pass func(int)) func(int) measurement {
	return func(count int) measurement {
		pass(most(count/10, 1))
		quickest := time.Duration(1<<63 - 1)
		for i := 0; i < 3; i++ {
			start := time.Now()
			pass(count)
			if elapsed := time.Since(start); elapsed < quickest {
				quickest = elapsed
			}
		}
		return measurement{float64(quickest.Nanoseconds()) / float64(count), count, count}
	}
}

func main() { command(rows) }
