package chaos

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"
)

func diskFaults() []fault {
	return []fault{
		{"disk-full", 3, diskFull},
		{"damaged-log", 3, damagedLog},
		{"damaged-snapshot", 3, damagedSnapshot},
	}
}

// diskFull makes a server run out of space while it works. The server should end instead of
// continuing, and be able to start again once there is space.
func diskFull(s *scene) error {
	m := s.any()
	d, err := s.smallDisk(m)
	if err != nil {
		return err
	}
	defer d.release() //nolint:errcheck // for the error paths; the last call checks
	from := m.LogEnd()
	s.logf("the disk of server %d is full (%s)", m.ID, d.kind())
	if err := d.fill(); err != nil {
		return err
	}
	st, err := m.running().Exit(patience)
	if err != nil {
		return fmt.Errorf("the disk of server %d is full: %w", m.ID, err)
	}
	if said := m.Logged(from); st.Success() || !strings.Contains(said, d.says()) {
		return fmt.Errorf("the disk of server %d is full, it ended with %v and said %q", m.ID, st, last(said))
	}
	s.hold(0, 2*time.Second)
	if err := d.release(); err != nil {
		return err
	}
	s.logf("there is space on the disk of server %d", m.ID)
	return s.revive(m)
}

// damagedLog flips a bit in the log of a dead server, which should detect it.
func damagedLog(s *scene) error {
	m := s.any()
	s.logf("kill -9 of server %d", m.ID)
	m.Kill()
	path, err := s.damageLog(m)
	if err != nil {
		return err
	}
	said, err := m.refusesToStart()
	if err != nil {
		return err
	}
	if !strings.Contains(said, filepath.Base(path)) || !indexed.MatchString(said) {
		return fmt.Errorf("server %d does not say which file and index of its log are damaged: %q", m.ID, said)
	}
	s.logf("server %d: %s", m.ID, said)
	return s.rejoin(m)
}

// indexed matches how a message names an entry of the log.
var indexed = regexp.MustCompile(`(index|entry|entries)\D{0,12}\d+`)

// refusesToStart starts a server that must end by itself, and returns its last
// log line.
func (m *Member) refusesToStart() (string, error) {
	from := m.LogEnd()
	if err := m.Start(); err != nil {
		return "", err
	}
	st, err := m.running().Exit(patience)
	if err != nil {
		return "", fmt.Errorf("server %d starts with a damaged disk: %w", m.ID, err)
	}
	said := last(m.Logged(from))
	if st.Success() {
		return "", fmt.Errorf("server %d with a damaged disk ended with %v: %s", m.ID, st, said)
	}
	return said, nil
}

// last returns the last line of a text.
func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// damageLog flips a bit of an acknowledged entry in the middle of the log.
func (s *scene) damageLog(m *Member) (path string, err error) {
	if s.opt.Store == "bolt" {
		return s.damageBolt(m)
	}
	all, err := m.findAll("*.seg")
	if err != nil || len(all) == 0 {
		return "", fmt.Errorf("server %d has no log: %w", m.ID, err)
	}
	slices.Sort(all)
	path = all[len(all)-1]
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	used := len(bytes.TrimRight(b, "\x00"))
	// The server may mistake the last append for a torn one, so we spare the last quarter.
	at := s.rnd.IntN(max(1, used*3/4))
	b[at] ^= 1 << s.rnd.IntN(8)
	s.logf("a bit of byte %d of %d in %s of server %d is flipped", at, used, filepath.Base(path), m.ID)
	return path, os.WriteFile(path, b, 0o600)
}

// damageBolt flips a bit in an entry that the server must read at its start. We change
// every copy in the file, because bolt leaves old copies of a page.
func (s *scene) damageBolt(m *Member) (path string, err error) {
	if path, err = m.find("raft.bolt"); err != nil {
		return "", err
	}
	entry, err := s.boltEntry(path, m.snapshotIndex())
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	// We change the middle: an entry begins with its append time, which is informational
	// and not covered by a checksum.
	bad := bytes.Clone(entry)
	bad[len(bad)/3+s.rnd.IntN(len(bad)/3)] ^= 1 << s.rnd.IntN(8)
	s.logf("a bit of an entry of %d bytes in %s of server %d is flipped", len(bad), filepath.Base(path), m.ID)
	return path, os.WriteFile(path, bytes.ReplaceAll(b, entry, bad), 0o600)
}

// boltEntry returns an entry of the log that no snapshot covers.
func (s *scene) boltEntry(path string, above uint64) (entry []byte, err error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte("logs")).Cursor()
		var all [][]byte
		for k, v := c.Seek(binary.BigEndian.AppendUint64(nil, above+1)); k != nil; k, v = c.Next() {
			all = append(all, v)
		}
		if len(all) == 0 {
			return fmt.Errorf("%s has no entries above %d", path, above)
		}
		entry = bytes.Clone(all[s.rnd.IntN(max(1, len(all)*3/4))])
		return nil
	})
	return entry, err
}

// damagedSnapshot flips a bit in the newest snapshot of a dead server. The server should
// report it. It may continue if its log still has all entries.
func damagedSnapshot(s *scene) error {
	m := s.any()
	if err := s.awaitSnapshot(m); err != nil {
		return err
	}
	s.logf("kill -9 of server %d", m.ID)
	m.Kill()
	dir, err := s.damageSnapshot(m)
	if err != nil {
		return err
	}
	from := m.LogEnd()
	if err := m.Start(); err != nil {
		return err
	}
	if err := s.Await("the server has judged its snapshot", patience, func(states []Status) bool {
		return states[m.ID-1].Serves() || !m.running().Running()
	}); err != nil {
		return err
	}
	said := m.Logged(from)
	if !strings.Contains(said, filepath.Base(dir)) {
		return fmt.Errorf("server %d does not name its damaged snapshot %s: %q", m.ID, filepath.Base(dir), said)
	}
	if !m.running().Running() {
		s.logf("server %d: %s", m.ID, last(said))
		return s.rejoin(m)
	}
	s.logf("server %d set the snapshot aside: its log has everything", m.ID)
	return s.AwaitHealthy()
}

func (m *Member) snapshots() ([]string, error) {
	all, err := m.findAll("state.bin")
	all = slices.DeleteFunc(all, func(p string) bool {
		return strings.Contains(filepath.Base(filepath.Dir(p)), ".")
	})
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(snapshotAge(a), snapshotAge(b)) })
	return all, err
}

// snapshotAge orders snapshot files, which are named term-index-time: a server's
// index only grows.
func snapshotAge(path string) (index uint64) {
	var term, msec uint64
	if _, err := fmt.Sscanf(filepath.Base(filepath.Dir(path)), "%d-%d-%d", &term, &index, &msec); err != nil {
		return 0
	}
	return index
}

// snapshotIndex returns the index at which the newest snapshot ends, or 0 if
// there is none.
func (m *Member) snapshotIndex() (index uint64) {
	all, err := m.snapshots()
	if err != nil || len(all) == 0 {
		return 0
	}
	return snapshotAge(all[len(all)-1])
}

// awaitSnapshot waits until the server has written a snapshot, which the clients'
// writes trigger.
func (s *scene) awaitSnapshot(m *Member) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		all, err := m.snapshots()
		if err == nil && len(all) > 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("server %d writes no snapshot: %w", m.ID, errors.Join(err))
		}
	}
}

func (s *scene) damageSnapshot(m *Member) (dir string, err error) {
	all, err := m.snapshots()
	if err != nil || len(all) == 0 {
		return "", fmt.Errorf("server %d has no snapshot: %w", m.ID, err)
	}
	path := all[len(all)-1]
	if s.rnd.IntN(4) == 0 {
		path = filepath.Join(filepath.Dir(path), "meta.json")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	at := s.rnd.IntN(len(b))
	b[at] ^= 1 << s.rnd.IntN(8)
	s.logf("a bit of byte %d of %d in %s of server %d is flipped", at, len(b), filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path)), m.ID)
	return filepath.Dir(path), os.WriteFile(path, b, 0o600)
}
