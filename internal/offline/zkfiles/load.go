package zkfiles

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/zkgo/zkgo/tree"
)

// Source says what is to be loaded, and how strictly.
type Source struct {
	Data   Dir
	Logs   Dir         // zero: the same as Data (dataLogDir is not set)
	Policy tree.Policy // only Emulate353TTL counts: the source ran with emulate353TTLNodes

	// Limits bounds fields and records.
	Limits Limits

	// NoLogs: the snapshot is all there is. Otherwise a directory without a log is
	// refused, since it looks the same when the logs were forgotten.
	NoLogs bool
	// AcceptGaps: transactions may be missing between the files, which are seen by
	// the numbers.
	AcceptGaps bool
	// IgnoreDigest: the state is taken although it is not what the source's own
	// digest says.
	IgnoreDigest bool

	// Progress is told how many bytes of how many have been read. It may be nil.
	Progress func(done, total int64)
}

// Report says how a State came about.
type Report struct {
	Snapshot     string // path; "" when the logs go back to the beginning
	Info         SnapshotInfo
	Logs         []string
	Transactions int   // that were applied
	Zxid         int64 // of the newest one
	Epoch        int64 // the newest that the directories know of
	// Compared counts the digests that were compared, Different those of them that
	// did not fit. Verified says that the newest one fitted.
	Compared, Different int
	Verified            bool
	// Warnings are things that ZooKeeper passes over, in words.
	Warnings []string
}

// Load reads the newest snapshot that is whole and applies the transactions
// behind it, as ZooKeeper does at its start.
func Load(src Source) (*State, *Report, error) {
	l := loader{Source: src, report: new(Report)}
	if err := l.find(); err != nil {
		return nil, nil, err
	}
	if err := l.snapshot(); err != nil {
		return nil, nil, err
	}
	if err := l.replay(); err != nil {
		return nil, nil, err
	}
	if err := l.verify(); err != nil {
		return nil, nil, err
	}
	l.report.Zxid = l.state.Zxid
	l.report.Epoch = max(l.report.Epoch, l.state.Zxid>>32)
	return l.state, l.report, nil
}

type loader struct {
	Source
	report *Report
	state  *State

	snapshots, logs []*file
	done, total     int64

	older   bool    // the newest snapshot could not be read
	due     *Digest // that of the snapshot, as long as its transaction has not come
	unsure  *Digest // that of the snapshot did not fit, and no other was compared since
	fuzzy   bool    // digests cannot be compared yet
	matches bool    // the newest digest that was compared fitted
}

func (l *loader) warn(format string, args ...any) {
	l.report.Warnings = append(l.report.Warnings, fmt.Sprintf(format, args...))
}

// find lists the files.
func (l *loader) find() error {
	data, err := l.Data.inside()
	if err != nil {
		return err
	}
	logs := data
	if l.Logs.FS != nil {
		if logs, err = l.Logs.inside(); err != nil {
			return err
		}
	}
	if l.snapshots, err = data.files(snapshotPrefix); err != nil {
		return err
	}
	if l.logs, err = logs.files(logPrefix); err != nil {
		return err
	}
	for _, name := range []string{"currentEpoch", "acceptedEpoch"} {
		n, err := data.epoch(name)
		if err != nil {
			return err
		}
		l.report.Epoch = max(l.report.Epoch, n)
	}
	if l.Logs.FS == nil || data.Name == logs.Name {
		return l.needLogs(data)
	}
	// As ZooKeeper: whoever has moved one of the two must not get half a state.
	strayLogs, err := data.files(logPrefix)
	if err != nil {
		return err
	}
	straySnapshots, err := logs.files(snapshotPrefix)
	switch {
	case err != nil:
		return err
	case len(strayLogs) > 0:
		return fmt.Errorf("%s holds transaction logs beside those in %s: which are the right ones?", data.Name, logs.Name)
	case len(straySnapshots) > 0:
		return fmt.Errorf("%s holds snapshots, as well as %s: are the two directories mixed up?", logs.Name, data.Name)
	}
	return l.needLogs(logs)
}

// needLogs refuses to take a snapshot for everything when the logs may have been
// forgotten.
func (l *loader) needLogs(dir Dir) error {
	switch {
	case l.NoLogs:
		l.logs = nil
	case len(l.snapshots) == 0 && len(l.logs) == 0:
		return fmt.Errorf("%s: there are no files of ZooKeeper: neither %s.* nor %s.*", dir.Name, snapshotPrefix, logPrefix)
	case len(l.logs) == 0 && l.snapshots[len(l.snapshots)-1].zxid != 0:
		return fmt.Errorf("%s: there are snapshots but no transaction logs. Are they in another directory (dataLogDir)? Without them everything since %s would be lost",
			dir.Name, l.snapshots[len(l.snapshots)-1].name)
	}
	return nil
}

// maxTries is how many snapshots ZooKeeper tries.
const maxTries = 100

// snapshot loads the newest snapshot that is whole.
func (l *loader) snapshot() error {
	var failed []error
	tries := slices.Clone(l.snapshots)
	slices.Reverse(tries)
	for _, f := range tries[:min(len(tries), maxTries)] {
		l.plan(f)
		state, info, err := l.read(f)
		if errors.Is(err, ErrTooLong) {
			return err // it is probably whole: an older one is no way out
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		l.state, l.report.Snapshot, l.report.Info = state, f.path, info
		l.state.Zxid, l.older = f.zxid, len(failed) > 0
		for _, err := range failed {
			l.warn("%v: the next older snapshot is used", err)
		}
		l.expect(info.Digest)
		return nil
	}
	if len(failed) > 0 {
		return fmt.Errorf("no snapshot can be read: %w", errors.Join(failed...))
	}
	l.plan(nil)
	l.state = newState(l.Policy)
	return nil
}

// expect prepares for the digest of the snapshot.
func (l *loader) expect(d *Digest) {
	switch {
	case d == nil || d.Zxid < l.state.Zxid: // an elected leader's, of the transaction before its epoch: ZooKeeper passes it over, too
	case d.Zxid == l.state.Zxid:
		l.snapshotDigest(d)
	default:
		l.due, l.fuzzy = d, true
	}
}

// plan says how much is to be read with this snapshot.
func (l *loader) plan(f *file) {
	from := int64(0)
	l.done, l.total = 0, 0
	if f != nil {
		from, l.total = f.zxid, f.size
	}
	for _, g := range l.logsFrom(from) {
		l.total += g.size
	}
}

// logsFrom returns the logs that can hold what is behind zxid: the last that
// begins at or before the next one, and all later.
func (l *loader) logsFrom(zxid int64) []*file {
	for i := len(l.logs) - 1; i >= 0; i-- {
		if l.logs[i].zxid <= zxid {
			return l.logs[i:]
		}
	}
	return l.logs
}

// read reads one snapshot.
func (l *loader) read(f *file) (*State, SnapshotInfo, error) {
	r, err := f.open()
	if err != nil {
		return nil, SnapshotInfo{}, err
	}
	defer func() { _ = r.Close() }() // it was only read
	return readSnapshot(f.path, l.counting(r), l.Policy, l.Limits)
}

// counting returns r with its progress told.
func (l *loader) counting(r io.Reader) io.Reader {
	if l.Progress == nil {
		return r
	}
	return &meter{r: r, l: l}
}

// meter tells the progress of a reader.
type meter struct {
	r io.Reader
	l *loader
}

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.l.done += int64(n)
	m.l.Progress(m.l.done, max(m.l.total, m.l.done))
	return n, err
}

// replay applies the logs.
func (l *loader) replay() error {
	var last join
	last.zxid = l.state.Zxid
	for _, f := range l.logsFrom(l.state.Zxid) {
		if err := l.file(f, &last); err != nil {
			return err
		}
	}
	return nil
}

// join is where one file ends and the next has to go on.
type join struct {
	zxid int64
	tail *Tail // how the file before ended
}

// file applies one log.
func (l *loader) file(f *file, last *join) error {
	r, err := f.open()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // it was only read
	log, first := ReadLog(f.path, l.counting(r), l.Limits), true
	for tx, err := range log.All() {
		if err != nil {
			return err
		}
		if l.report.Transactions == 0 && tx.Zxid <= l.state.Zxid { // it is in the snapshot
			continue
		}
		if err := l.follows(f, tx, last, first); err != nil {
			return err
		}
		first = false
		if err := l.apply(tx); err != nil {
			return fmt.Errorf("%s: at offset %d: %w", f.path, tx.Offset, err)
		}
	}
	l.report.Logs = append(l.report.Logs, f.path)
	last.tail = log.Tail()
	if last.tail != nil {
		l.warn("%v", last.tail)
	}
	return nil
}

// follows checks that tx is the next transaction. The zxids of an epoch have no
// gaps, but for requests that some versions numbered and did not log; so only
// where files meet a gap is taken for a loss.
func (l *loader) follows(f *file, tx *Txn, last *join, first bool) error {
	before := last.zxid
	last.zxid = tx.Zxid
	switch {
	case tx.Zxid <= before:
		return fmt.Errorf("%s: at offset %d: transaction %#x comes behind %#x", f.path, tx.Offset, tx.Zxid, before)
	case tx.Zxid == before+1 || tx.Zxid>>32 > before>>32 && tx.Zxid&0xffffffff <= 1 && !l.oldStart(tx):
		return nil
	case !first:
		l.warn("%s: at offset %d: no transaction has a number between %#x and %#x", f.path, tx.Offset, before, tx.Zxid)
		return nil
	}
	text := fmt.Sprintf("%s: it begins with transaction %#x, what is before it ends with %#x: what was between is missing", f.path, tx.Zxid, before)
	if last.tail != nil {
		text += fmt.Sprintf(" (%s: at offset %d: %s)", last.tail.File, last.tail.Offset, last.tail.Cause)
	}
	if l.AcceptGaps {
		l.warn("%s", text)
		return nil
	}
	return errors.New(text)
}

// oldStart says that tx is the first one behind a start so old that whole epochs
// may be missing: no snapshot at all, or one that was not the newest. There, only
// the next number will do.
func (l *loader) oldStart(tx *Txn) bool {
	return l.report.Transactions == 0 && (l.older || l.report.Snapshot == "" && tx.Zxid>>32 > 1)
}

// apply applies a transaction and compares the digest.
func (l *loader) apply(tx *Txn) error {
	if err := l.state.Apply(tx); err != nil {
		return err
	}
	l.report.Transactions++
	switch d := l.due; {
	case d == nil:
	case tx.Zxid == d.Zxid:
		l.due, l.fuzzy = nil, false
		if !l.snapshotDigest(d) {
			return nil // that of the transaction itself does not fit either
		}
	case tx.Zxid > d.Zxid:
		l.warn("transaction %#x, of which the snapshot has the digest, is not in the logs", d.Zxid)
		l.due, l.fuzzy = nil, false
	}
	if tx.Digest != nil && !l.fuzzy {
		l.compare(tx.Digest)
	}
	return nil
}

// snapshotDigest holds the state against the digest of the snapshot. One that
// does not fit is no verdict yet: ZooKeeper notes the zxid of a transaction after
// it has changed the znodes, so a snapshot may have caught the change that
// follows on its digest.
func (l *loader) snapshotDigest(d *Digest) bool {
	if d.Version == digestVersion && d.Value != l.state.digest {
		l.unsure = d
		return false
	}
	l.compare(d)
	return true
}

// compare holds the state against a digest.
func (l *loader) compare(d *Digest) {
	if d.Version != digestVersion {
		return
	}
	l.unsure = nil
	l.report.Compared++
	l.matches = d.Value == l.state.digest
	if !l.matches {
		l.report.Different++
		if l.report.Different == 1 {
			l.warn("at zxid %#x the digest is %#x, the source says %#x", d.Zxid, l.state.digest, d.Value)
		}
	}
}

// verify says whether what was put together is what the source had. The newest
// digest decides: one that does not fit on the way can be ZooKeeper's own error,
// a wrong state never fits again.
func (l *loader) verify() error {
	if l.unsure != nil {
		l.compare(l.unsure)
	}
	l.report.Verified = l.report.Compared > 0 && l.matches
	var err error
	switch {
	case l.due != nil:
		err = fmt.Errorf("%s: it was written until transaction %#x, and the logs end with %#x: what is in it is no state without the rest of them",
			l.report.Snapshot, l.due.Zxid, l.state.Zxid)
	case l.report.Compared > 0 && !l.matches:
		err = fmt.Errorf("the state at zxid %#x is not what the source had: its digest is another one (%d of %d compared digests differ)",
			l.state.Zxid, l.report.Different, l.report.Compared)
	}
	if err != nil && l.IgnoreDigest {
		l.warn("%v", err)
		return nil
	}
	return err
}
