// The command line of the rivals in Go, which the harness calls like that of cbench.h, and their checks.
package main

import (
	"fmt"
	"os"
)

func verify(observed, expected int, what string) {
	if observed == expected {
		return
	}
	fmt.Fprintf(os.Stderr, "rival failed: %s: expected %d, observed %d\n", what, expected, observed)
	os.Exit(70)
}

// Nanoseconds an operation, and a sum that the harness compares with that of other contestants.
type measurement struct {
	value      float64
	operations int
	check      int
}

type row struct {
	name, question string
	count          int
	measure        func(count int) measurement
}

// Lists the rows, or measures one.
func command(rows []row) {
	name, divisor, list := "", 1, false
	for i := 1; i < len(os.Args); i++ {
		switch os.Args[i] {
		case "--list":
			list = true
		case "--quick":
			divisor = 10
		case "--row":
			if i++; i < len(os.Args) {
				name = os.Args[i]
			}
		}
	}
	for _, row := range rows {
		if list {
			fmt.Printf("%s\tns\t%s\n", row.name, row.question)
		} else if row.name == name {
			result := row.measure(row.count / divisor)
			fmt.Printf("%s %f %d %d\n", row.name, result.value, result.operations, result.check)
			return
		}
	}
	if !list {
		fmt.Fprintln(os.Stderr, "usage: --list | --row NAME [--quick]")
		os.Exit(64)
	}
}
