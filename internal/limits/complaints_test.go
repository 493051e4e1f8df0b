package limits

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestComplaintsAreRateLimited(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	k := NewComplaints(slog.New(slog.NewTextHandler(&out, nil)))
	every := int64(ComplaintEvery)
	k.Warn(0, "a", "n", 1)
	k.Warn(1, "b", "n", 2)
	k.Warn(2, "a", "n", 3)
	k.Warn(3, "a", "n", 4)
	k.CatchUp(4)
	if got := strings.Count(out.String(), "\n"); got != 2 {
		t.Errorf("%d lines at first:\n%s", got, &out)
	}
	out.Reset()
	k.Warn(every, "a", "n", 5)
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "n=5 others=2") {
		t.Errorf("after a while: %s", got)
	}
	out.Reset()
	k.CatchUp(3 * every)
	if out.Len() != 0 {
		t.Errorf("logged without a complaint: %s", &out)
	}
}
