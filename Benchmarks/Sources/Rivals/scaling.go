// Go at the rows about many processors for which it has a counterpart. The rows are those of bench-scaling; the
// measuring loop is that of cbench.h. Like rival.go it calls no C, which would change how goroutines are scheduled.
package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	window      = 1_000
	indices     = 10_000
	timers      = 10_000
	callers     = 4
	connections = 1_000
)

var processors = runtime.GOMAXPROCS(0)

// A number on cache lines of its own.
type counter struct {
	value int64
	_     [15]int64
}

// The time of so many goroutines that start together.
func onGoroutines(count int, body func(int)) time.Duration {
	var begun, ended sync.WaitGroup
	begun.Add(1)
	ended.Add(count)
	for i := 0; i < count; i++ {
		go func(i int) {
			begun.Wait()
			body(i)
			ended.Done()
		}(i)
	}
	start := time.Now()
	begun.Done()
	ended.Wait()
	return time.Since(start)
}

// MARK: Submissions

type room chan struct{}

func newRoom() room {
	r := make(room, 2)
	r <- struct{}{}
	r <- struct{}{}
	return r
}

// A goroutine that runs functions one after the other.
type serial struct {
	items chan func()
	count counter
}

func newSerial() *serial {
	s := &serial{items: make(chan func(), 2*window)}
	go func() {
		for item := range s.items {
			item()
		}
	}()
	return s
}

func (s *serial) submit(units int) {
	room := newRoom()
	for unit := 0; unit < units; unit++ {
		<-room
		for i := 1; i < window; i++ {
			s.items <- func() { s.count.value++ }
		}
		s.items <- func() {
			s.count.value++
			room <- struct{}{}
		}
	}
	<-room
	<-room
}

func oneSerialQueue(units int) (int, time.Duration) {
	s := newSerial()
	elapsed := onGoroutines(processors, func(int) { s.submit(units) })
	close(s.items)
	verify(int(s.count.value), processors*units*window, "items that excluded each other")
	return processors * units * window, elapsed
}

func serialQueueEach(units int) (int, time.Duration) {
	all := make([]*serial, processors)
	for i := range all {
		all[i] = newSerial()
	}
	elapsed := onGoroutines(processors, func(i int) { all[i].submit(units) })
	sum := 0
	for _, s := range all {
		close(s.items)
		sum += int(s.count.value)
	}
	verify(sum, processors*units*window, "items")
	return sum, elapsed
}

func globalQueue(units int) (int, time.Duration) {
	return processors * units * window, onGoroutines(processors, func(int) {
		var left [2]counter
		var done [2]chan struct{}
		for half := range done {
			done[half] = make(chan struct{}, 1)
			done[half] <- struct{}{}
		}
		for unit := 0; unit < units; unit++ {
			half := unit % 2
			<-done[half]
			left[half].value = window
			for i := 0; i < window; i++ {
				go func() {
					now := atomic.AddInt64(&left[half].value, -1)
					if now == 0 {
						done[half] <- struct{}{}
					} else if now < 0 {
						verify(int(now), 0, "an item ran twice")
					}
				}()
			}
		}
		<-done[0]
		<-done[1]
	})
}

func group(units int) (int, time.Duration) {
	return processors * units * window, onGoroutines(processors, func(int) {
		slots := make([]int32, window)
		for unit := 0; unit < units; unit++ {
			var group sync.WaitGroup
			for i := 0; i < window; i++ {
				group.Add(1)
				go func(i int) {
					slots[i]++
					group.Done()
				}(i)
			}
			group.Wait()
			for _, runs := range slots {
				verify(int(runs), unit+1, "runs of an item")
			}
		}
	})
}

// MARK: Entries

func readers(units int) (int, time.Duration) {
	var mutex sync.RWMutex
	value, sums := 1, make([]counter, processors)
	elapsed := onGoroutines(processors, func(i int) {
		for n := 0; n < units*window; n++ {
			mutex.RLock()
			sums[i].value += int64(value)
			mutex.RUnlock()
		}
	})
	sum := 0
	for i := range sums {
		sum += int(sums[i].value)
	}
	verify(sum, processors*units*window, "the sum of what was read")
	return sum, elapsed
}

func contended(units int) (int, time.Duration) {
	var mutex sync.Mutex
	var entries counter
	elapsed := onGoroutines(processors, func(int) {
		for n := 0; n < units*window; n++ {
			mutex.Lock()
			entries.value++
			mutex.Unlock()
		}
	})
	verify(int(entries.value), processors*units*window, "entries that excluded each other")
	return processors * units * window, elapsed
}

// MARK: Others

// A goroutine that answers requests one after the other stands for an actor.
func actors(units int) (int, time.Duration) {
	calls, count := units*10, make([]counter, processors)
	elapsed := onGoroutines(processors, func(i int) {
		requests := make(chan chan struct{}, callers)
		go func() {
			for answer := range requests {
				count[i].value++
				answer <- struct{}{}
			}
		}()
		onGoroutines(callers, func(int) {
			answer := make(chan struct{}, 1)
			for call := 0; call < calls; call++ {
				requests <- answer
				<-answer
			}
		})
		close(requests)
	})
	sum := 0
	for i := range count {
		sum += int(count[i].value)
	}
	verify(sum, processors*callers*calls, "calls that excluded each other")
	return sum, elapsed
}

func asyncAfter(units int) (int, time.Duration) {
	return processors * units * timers, onGoroutines(processors, func(int) {
		room := newRoom()
		var fired counter
		for unit := 0; unit < units; unit++ {
			<-room
			for i := 0; i < timers; i++ {
				time.AfterFunc(time.Millisecond, func() {
					if atomic.AddInt64(&fired.value, 1)%timers == 0 {
						room <- struct{}{}
					}
				})
			}
		}
		<-room
		<-room
		verify(int(atomic.LoadInt64(&fired.value)), units*timers, "timers that fired")
	})
}

func parallelLoop(units int) (int, time.Duration) {
	start := time.Now()
	parallelFor(units*indices, func(int) {})
	elapsed := time.Since(start)
	slots := make([]int32, indices)
	parallelFor(indices, func(i int) { slots[i]++ })
	for _, visits := range slots {
		verify(int(visits), 1, "visits of an index")
	}
	return units * indices, elapsed
}

// A range for each processor, and one function call for each index.
//
//go:noinline
func parallelFor(count int, body func(int)) {
	onGoroutines(processors, func(worker int) {
		for i := count * worker / processors; i < count*(worker+1)/processors; i++ {
			body(i)
		}
	})
}

// A goroutine for each connection. The clients are those of the other runtimes.
func echo(milliseconds int) (float64, int) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	var served sync.WaitGroup
	var echoed int64
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			served.Add(1)
			go func() {
				defer served.Done()
				defer connection.Close()
				buffer := make([]byte, 1024)
				sum := 0
				for {
					count, err := connection.Read(buffer)
					if err != nil {
						break
					}
					if _, err := connection.Write(buffer[:count]); err != nil {
						panic(err)
					}
					sum += count
				}
				atomic.AddInt64(&echoed, int64(sum))
			}()
		}
	}()
	own, err := os.Executable()
	if err != nil {
		panic(err)
	}
	const passes = 3
	share := milliseconds / passes
	if share < 1 {
		share = 1
	}
	output, err := exec.Command(filepath.Join(filepath.Dir(own), "echo-load"),
		fmt.Sprintf("--port=%d", listener.Addr().(*net.TCPAddr).Port), fmt.Sprintf("--connections=%d", connections),
		fmt.Sprintf("--processes=%d", (processors+1)/2), fmt.Sprintf("--milliseconds=%d", share),
		fmt.Sprintf("--passes=%d", passes)).Output()
	if err != nil {
		panic(err)
	}
	var nanoseconds, bytes, trips int
	if count, _ := fmt.Sscan(string(output), &nanoseconds, &bytes, &trips); count != 3 {
		panic(string(output))
	}
	listener.Close()
	served.Wait()
	verify(int(echoed), bytes, "bytes that the server echoed")
	return float64(trips) * 1e9 / float64(nanoseconds), trips
}

// Passes of so many units until one takes an eighth of the time, then as many as the time has room for.
func best(milliseconds int, pass func(int) (int, time.Duration)) (float64, int) {
	eighth := time.Duration(milliseconds) * time.Millisecond / 8
	units := 1
	for {
		_, elapsed := pass(units)
		if elapsed >= eighth || units >= 1<<30 {
			break
		} else if elapsed < eighth/16 {
			units *= 8
		} else {
			units *= 2
		}
	}
	most, count := 0.0, 0
	for end := time.Now().Add(8 * eighth); time.Now().Before(end); {
		operations, elapsed := pass(units)
		if rate := float64(operations) / elapsed.Seconds(); rate > most {
			most, count = rate, operations
		}
	}
	return most, count
}

var rows = []struct {
	name, question string
	pass           func(int) (int, time.Duration)
}{
	{"async-one-serial-queue", "a goroutine that reads a channel", oneSerialQueue},
	{"async-serial-queue-each", "a goroutine that reads a channel for each", serialQueueEach},
	{"async-global-queue", "go", globalQueue},
	{"group", "goroutines and a WaitGroup", group},
	{"readers", "RWMutex", readers},
	{"sync-contended", "Mutex", contended},
	{"actor-each", "a goroutine that answers requests", actors},
	{"async-after", "time.AfterFunc", asyncAfter},
	{"echo-1000-connections", "a goroutine for each connection", nil},
	{"parallel-loop", "a range for each processor", parallelLoop},
}

func main() {
	name, milliseconds, list := "", 300, false
	for i := 1; i < len(os.Args); i++ {
		switch {
		case os.Args[i] == "--list":
			list = true
		case i+1 == len(os.Args):
		case os.Args[i] == "--row":
			i++
			name = os.Args[i]
		case os.Args[i] == "--milliseconds":
			i++
			milliseconds, _ = strconv.Atoi(os.Args[i])
		}
	}
	for _, row := range rows {
		if list {
			fmt.Printf("%s\t1/s\t%s\n", row.name, row.question)
		} else if row.name == name {
			var rate float64
			var operations int
			if row.pass == nil {
				rate, operations = echo(milliseconds)
			} else {
				rate, operations = best(milliseconds, row.pass)
			}
			fmt.Printf("%s %f %d %d\n", row.name, rate, operations, operations)
			return
		}
	}
	if !list {
		fmt.Fprintln(os.Stderr, "usage: --list | --row NAME [--milliseconds N]")
		os.Exit(64)
	}
}
