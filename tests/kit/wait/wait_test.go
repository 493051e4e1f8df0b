package wait_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/tests/kit/wait"
)

var errAbsent = errors.New("absent")

// TestWaits: a wait ends with the condition, with the condition's error, or with the limit.
func TestWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun, asked := time.Now(), 0
		wait.Eventually(t, "a minute", func() bool { asked++; return time.Since(begun) >= time.Minute })
		if took := time.Since(begun); took > time.Minute+time.Second || asked > 13_000 {
			t.Errorf("%v, asked %d times", took, asked)
		}
		if err := wait.For(time.Hour, "it", func() (bool, error) { return false, errAbsent }); !errors.Is(err, errAbsent) {
			t.Errorf("a condition that fails: %v", err)
		}
		begun = time.Now()
		err := wait.Success(time.Hour, "it", func() error { return errAbsent })
		if took := time.Since(begun); !errors.Is(err, errAbsent) || !strings.Contains(err.Error(), "not within 1h") || took < time.Hour || took > time.Hour+time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	})
}
