package main

import (
	"fmt"
	"runtime"
	"sync"
)

//go:noinline
func spin(rounds int) int {
	sum := 0
	for i := 0; i < rounds; i++ {
		sum += i & 3 // spins
	}
	return sum
}

func main() {
	var group sync.WaitGroup
	sums := make([]int, 8)
	for part := range sums {
		group.Add(1)
		go func(part int) {
			defer group.Done()
			for i := 0; i < 5; i++ {
				sums[part] += spin(4000000)
			}
		}(part)
	}
	done := make(chan bool)
	go func() {
		group.Wait()
		close(done)
	}()
	for {
		select {
		case <-done:
			fmt.Println(sums)
			return
		default:
			runtime.GC()
		}
	}
}
