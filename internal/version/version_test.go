package version

import (
	"testing"
	"time"
)

func TestStamp(t *testing.T) {
	t.Parallel()
	version, revision, at, ok := readStamp("1.2.3 0123456789ab 2026-11-22T09:00:00Z")
	if !ok || version != "1.2.3" || revision != "0123456789ab" || !at.Equal(time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)) {
		t.Error(version, revision, at, ok)
	}
	for _, s := range []string{"", "1.2.3", "1.2.3 a yesterday", "1.2.3 a b c"} {
		if _, _, _, ok := readStamp(s); ok {
			t.Errorf("%q is a stamp", s)
		}
	}
}
