package powerloss

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/raftlog"
)

// promise is the replies that a workload had got by the time of a cut, and the step
// that was in progress then: that step may have happened or not.
type promise struct {
	doing  string
	before string // the step in progress at an earlier cut, see uncertain

	entries  map[uint64]uint64 // index to term
	compact  uint64            // entries up to here may be gone
	snapshot uint64            // index of the newest snapshot
	term     uint64
	vote     vote
}

type vote struct {
	term uint64
	cand string
}

// uncertain records that the step in progress may have happened or not, and that
// another one begins.
func (p *promise) uncertain() { p.before, p.doing = p.doing, "" }

// mayBe reports whether verb was in progress, now or at an earlier cut, and
// parses its arguments.
func (p *promise) mayBe(verb string, args ...any) bool {
	for _, doing := range []string{p.doing, p.before} {
		if rest, ok := strings.CutPrefix(doing, verb+" "); ok {
			fmt.Sscan(rest, args...)
			return true
		}
	}
	return false
}

func (p *promise) mark(line string) {
	var a, b, c uint64
	var s string
	verb, rest, _ := strings.Cut(line, " ")
	p.doing = ""
	switch verb {
	case "stored":
		fmt.Sscan(rest, &a, &b, &c)
		for i := a; i <= b; i++ {
			p.entries[i] = c
		}
	case "removed":
		fmt.Sscan(rest, &a)
		p.forget(a)
	case "termed":
		fmt.Sscan(rest, &p.term)
	case "voted":
		fmt.Sscan(rest, &a, &s)
		p.vote = vote{a, s}
	case "snapped":
		fmt.Sscan(rest, &p.snapshot, &b)
	case "compact":
		p.doing = line
		fmt.Sscan(rest, &p.compact)
	case "opened", "compacted":
	case "store":
		p.doing = line
		// After an earlier cut this shows whether the removal had happened.
		if fmt.Sscan(rest, &a); p.mayBe("remove", &b) {
			p.forget(max(a, b))
		}
	default:
		p.doing = line
	}
}

// forget drops the entries from index on, which were removed.
func (p *promise) forget(index uint64) {
	for i := range p.entries {
		if i >= index {
			delete(p.entries, i)
		}
	}
}

// kept returns an error if an image does not keep the promise.
func (p *promise) kept(dir string, kind raftlog.Kind) error {
	s, err := raftlog.Open(options(dir, kind))
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer s.Close()
	if err := errors.Join(p.keptLog(s), p.keptVote(s), p.keptSnapshot(s)); err != nil {
		return err
	}
	return goesOn(s, dir, kind)
}

func (p *promise) keptLog(s *raftlog.Store) error {
	first, _ := s.Logs().FirstIndex()
	last, err := s.Logs().LastIndex()
	if err != nil {
		return err
	}
	var lo uint64
	removing := p.mayBe("remove", &lo)
	for i, want := range p.entries {
		optional := i <= p.compact || removing && i >= lo
		if i < first || i > last || first == 0 {
			if !optional {
				return fmt.Errorf("entry %d, acknowledged in term %d, is gone: the log is %d to %d", i, want, first, last)
			}
			continue
		}
		if err := sameEntry(s, i, want); err != nil {
			return err
		}
	}
	for i := first; i <= last && first != 0; i++ {
		if _, ok := p.entries[i]; ok {
			continue
		}
		if err := p.mayHold(s, i); err != nil {
			return err
		}
	}
	return nil
}

// mayHold checks an entry that was not acknowledged: it must be one that was
// being stored.
func (p *promise) mayHold(s *raftlog.Store, i uint64) error {
	var errs []error
	for _, doing := range []string{p.doing, p.before} {
		var lo, hi, term uint64
		one := promise{doing: doing}
		if one.mayBe("store", &lo, &hi, &term) && lo <= i && i <= hi {
			err := sameEntry(s, i, term)
			if err == nil {
				return nil
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, fmt.Errorf("entry %d appeared, while %q, before %q", i, p.doing, p.before))...)
}

// sameEntry reads an entry. If the entry is damaged, GetLog doesn't return.
func sameEntry(s *raftlog.Store, index, term uint64) error {
	var l raft.Log
	done := make(chan error, 1)
	go func() { done <- s.Logs().GetLog(index, &l) }()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("entry %d: %w", index, err)
		}
	case err := <-s.Failed():
		return err
	}
	if l.Term != term || !bytes.Equal(l.Data, entryData(index, term)) {
		return fmt.Errorf("entry %d of term %d is not the one of term %d that was acknowledged", index, l.Term, term)
	}
	return nil
}

func (p *promise) keptVote(s *raftlog.Store) error {
	var got vote
	term, err := s.Stable().GetUint64([]byte("CurrentTerm"))
	if err != nil {
		return err
	}
	if got.term, err = s.Stable().GetUint64([]byte("LastVoteTerm")); err != nil {
		return err
	}
	cand, err := s.Stable().Get([]byte("LastVoteCand"))
	if err != nil {
		return err
	}
	got.cand = string(cand)
	var next vote
	if term != p.term && !(p.mayBe("term", &next.term) && term == next.term) {
		return fmt.Errorf("current term %d, saved was %d", term, p.term)
	}
	if got != p.vote && !(p.mayBe("vote", &next.term, &next.cand) && got == next) {
		return fmt.Errorf("vote %v, saved was %v", got, p.vote)
	}
	return nil
}

func (p *promise) keptSnapshot(s *raftlog.Store) error {
	metas, err := s.Snapshots().List()
	if err != nil {
		return err
	}
	if len(metas) == 0 {
		if p.snapshot != 0 {
			return fmt.Errorf("snapshot %d is gone", p.snapshot)
		}
		return nil
	}
	if metas[0].Index < p.snapshot {
		return fmt.Errorf("the newest snapshot is of %d, written was one of %d", metas[0].Index, p.snapshot)
	}
	_, r, err := s.Snapshots().Open(metas[0].ID)
	if err != nil {
		return err
	}
	defer r.Close()
	state, err := io.ReadAll(r)
	if err == nil && !bytes.Equal(state, stateData(metas[0].Index)) {
		err = fmt.Errorf("snapshot %d has other content", metas[0].Index)
	}
	return err
}

// goesOn appends after the cut and opens the store once more.
func goesOn(s *raftlog.Store, dir string, kind raftlog.Kind) error {
	last, err := s.Logs().LastIndex()
	if err != nil {
		return err
	}
	if last == 0 {
		metas, err := s.Snapshots().List()
		if err != nil {
			return err
		}
		if len(metas) > 0 {
			last = metas[0].Index
		}
	}
	const term = 1 << 30
	for i := last + 1; i <= last+3; i++ {
		if err := s.Logs().StoreLog(&raft.Log{Index: i, Term: term, Data: entryData(i, term)}); err != nil {
			return err
		}
	}
	if err := s.Close(); err != nil {
		return err
	}
	s, err = raftlog.Open(options(dir, kind))
	if err != nil {
		return fmt.Errorf("open once more: %w", err)
	}
	defer s.Close()
	for i := last + 1; i <= last+3; i++ {
		if err := sameEntry(s, i, term); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}
