package raftlog

import (
	"fmt"
	"maps"
)

// record is all of the small durable state: the term, the vote, and the last known end of
// the log. We always change it as a whole, so that we can't mistake a damaged value for
// one that was never set.
type record struct {
	// Floor is an index that the log has certainly reached. If a log ends before it, the
	// log is damaged, however clean its end looks. We write the floor when we close the
	// store, and lower it before we remove entries from the end.
	Floor uint64 `json:"floor"`
	// Snapshot is the index of the snapshot that was written last. If the log doesn't
	// reach that far, only this index shows that the snapshot is missing.
	Snapshot uint64            `json:"snapshot"`
	Values   map[string][]byte `json:"values"`
}

func (r *record) clone() record {
	return record{Floor: r.Floor, Snapshot: r.Snapshot, Values: maps.Clone(r.Values)}
}

// decodeRecord decodes a record. nil, as in a new store, decodes to an empty record.
func decodeRecord(b []byte) (record, error) {
	var r record
	if b != nil {
		if err := decodeChecked(b, &r); err != nil {
			return r, fmt.Errorf("the record with term and vote is %w", err)
		}
	}
	if r.Values == nil {
		r.Values = map[string][]byte{}
	}
	return r, nil
}

// reached returns an error if a log that ends at last is shorter than it was. where is
// the path of its last file.
func (r *record) reached(where string, last uint64) error {
	if last >= r.Floor {
		return nil
	}
	return fmt.Errorf("%s: damaged: the log ends at index %d, but it had reached log index %d", where, last, r.Floor)
}

// covered returns an error if entries are missing that only a snapshot can have. last is
// the index of the log's last entry.
func (r *record) covered(snapDir string, last uint64) error {
	if last >= r.Snapshot {
		return nil
	}
	return fmt.Errorf("%s: damaged: the snapshot that ends at log index %d is missing, and the remaining snapshots and log end at log index %d", snapDir, r.Snapshot, last)
}
