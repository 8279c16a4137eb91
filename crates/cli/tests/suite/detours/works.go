package main

import "fmt"

//go:noinline
func work(n int) int {
	if n%3 == 0 {
		return 1
	}
	return 2
}

func main() {
	parts := make(chan int)
	for part := 0; part < 4; part++ {
		go func() {
			sum := 0
			for n := 0; n < 3000; n++ {
				sum += work(n)
			}
			parts <- sum // goroutines
		}()
	}
	fmt.Println(<-parts, <-parts, <-parts, <-parts)
}
