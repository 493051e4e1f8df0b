package lossyfs

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// Player replays a journal, forwards only.
type Player struct {
	disk *Disk
	ops  []Op
	at   int
}

// Replay returns a player of the journal on a new disk.
func Replay(ops []Op, f Faults) *Player {
	d := NewDisk(f)
	d.replay = true
	return &Player{disk: d, ops: ops}
}

// Advance executes the operations up to the n-th.
func (p *Player) Advance(n int) error {
	for ; p.at < n; p.at++ {
		if _, errno := p.disk.do(p.ops[p.at]); errno != 0 {
			return fmt.Errorf("operation %d: %w", p.at, errno)
		}
	}
	return nil
}

// Export writes the files that would survive a power cut now; see Disk.Export.
func (p *Player) Export(to string, luck *rand.Rand) error { return p.disk.Export(to, luck) }

// Export writes the files that would survive a power cut to the directory to. With nil luck,
// everything that was not fsynced is lost. Otherwise some unsynced changes survive: any of a file's
// pages, but only a prefix of the changes to a directory, because metadata is written in order; a
// page may even be torn between sectors.
func (d *Disk) Export(to string, luck *rand.Rand) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.export(Root, to, luck, 0)
}

// ExportAll writes the current content of the files, as if everything had been fsynced.
func (d *Disk) ExportAll(to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.inodes {
		if n.dir {
			n.kept, n.pending = maps.Clone(n.entries), nil
		} else {
			n.fsync()
		}
	}
	return d.export(Root, to, nil, 0)
}

func (d *Disk) export(id ID, to string, luck *rand.Rand, depth int) error {
	n := d.inodes[id]
	if !n.dir {
		return os.WriteFile(to, n.afterCut(luck), 0o640)
	}
	if err := os.Mkdir(to, 0o750); err != nil && (depth > 0 || !os.IsExist(err)) {
		return err
	}
	entries := maps.Clone(n.kept)
	if luck != nil {
		for _, c := range n.pending[:luck.IntN(len(n.pending)+1)] {
			c.applyTo(entries)
		}
	}
	for _, name := range sortedNames(entries) {
		if err := d.export(entries[name], filepath.Join(to, name), luck, depth+1); err != nil {
			return err
		}
	}
	return nil
}

const sector = 512

func (n *inode) afterCut(luck *rand.Rand) []byte {
	if luck == nil || len(n.dirty) == 0 {
		return n.durable
	}
	out := n.durable[:len(n.durable):len(n.durable)]
	if luck.IntN(2) == 0 {
		out = fit(out, len(n.data)) // the size made it to the disk
	}
	out = append([]byte(nil), out...)
	for _, p := range sortedPages(n.dirty) {
		switch luck.IntN(4) {
		case 0, 1: // lost
		case 2:
			n.copyPage(out, p)
		case 3: // torn
			for s := p * pageSize; s < (p+1)*pageSize; s += sector {
				if end := min(s+sector, len(n.data), len(out)); s < end && luck.IntN(2) == 0 {
					copy(out[s:end], n.data[s:end])
				}
			}
		}
	}
	return out
}

// We need a fixed order of iteration, otherwise a seed would not determine the result.

func sortedNames(m map[string]ID) []string { return slices.Sorted(maps.Keys(m)) }

func sortedPages(m map[int]bool) []int { return slices.Sorted(maps.Keys(m)) }
