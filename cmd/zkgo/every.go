package main

import "time"

// every calls look once an interval, on one goroutine. It returns the function that
// ends it, after which look is not running and will not be called.
func every(interval time.Duration, look func()) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				look()
			}
		}
	}()
	return func() { close(done); <-ended }
}
