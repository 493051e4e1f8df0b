package main

import "time"

// every calls look once per interval on one goroutine. The returned function stops
// it; after it returns, look isn't running and won't be called again.
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
