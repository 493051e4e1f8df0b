package propose

import (
	"sync"
)

// Sizes are the sizes in bytes of the log entries that this server has proposed, −1
// before the first one, and the number of commands in these entries.
type Sizes struct{ Last, Min, Max, Commands int64 }

// SizeCounter keeps Sizes.
type SizeCounter struct {
	mu    sync.Mutex
	sizes Sizes
	any   bool
}

// note counts one entry.
func (p *SizeCounter) note(bytes, commands int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	size := int64(bytes)
	if !p.any {
		p.any, p.sizes.Min = true, size
	}
	p.sizes.Last = size
	p.sizes.Commands += int64(commands)
	p.sizes.Min = min(p.sizes.Min, size)
	p.sizes.Max = max(p.sizes.Max, size)
}

// Get returns the sizes so far.
func (p *SizeCounter) Get() Sizes {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.any {
		return Sizes{-1, -1, -1, 0}
	}
	return p.sizes
}
