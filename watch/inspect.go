package watch

import (
	"maps"
	"slices"
)

// Counts summarizes a table in ZooKeeper's terms. The data list contains data, persistent
// and recursive watches; the child list contains child and persistent ones.
type Counts struct {
	Data  int // entries of the data list
	Child int // entries of the child list
	Conns int // connections in the data list
	Paths int // paths in the data list
}

// Total returns the number that mntr calls watch_count.
func (c Counts) Total() int { return c.Data + c.Child }

// Size returns only the numbers that we know without a walk of the table: Conns and Paths
// are 0.
func (t *Table) Size() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Counts{Data: t.dataRegs, Child: t.childRegs}
}

// Counts returns all numbers. It walks the whole table.
func (t *Table) Counts() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := Counts{Data: t.dataRegs, Child: t.childRegs}
	conns := make(map[*Watcher]struct{})
	for _, e := range t.entries {
		watched := false
		for _, g := range e.regs {
			if g.kinds&dataList != 0 {
				conns[g.w] = struct{}{}
				watched = true
			}
		}
		if watched {
			c.Paths++
		}
	}
	c.Conns = len(conns)
	return c
}

// Each calls f for every watch of every watcher, with the table locked.
func (t *Table) Each(f func(w *Watcher, path string, k Kind)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for path, e := range t.entries {
		for _, g := range e.regs {
			for k := Data; k <= Recursive; k++ {
				if g.kinds&setOf(k) != 0 {
					f(g.w, path, k)
				}
			}
		}
	}
}

// ByPath returns the watchers of the data list by path, as wchp prints them.
func (t *Table) ByPath() map[string][]*Watcher {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := make(map[string][]*Watcher, len(t.entries))
	for path, e := range t.entries {
		for _, g := range e.regs {
			if g.kinds&dataList != 0 {
				m[path] = append(m[path], g.w)
			}
		}
	}
	return m
}

// ByWatcher returns the sorted paths of the data list by watcher, as wchc
// prints them.
func (t *Table) ByWatcher() map[*Watcher][]string {
	byPath := t.ByPath()
	m := make(map[*Watcher][]string)
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		for _, w := range byPath[path] {
			m[w] = append(m[w], path)
		}
	}
	return m
}
