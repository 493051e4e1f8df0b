package replica

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
	"github.com/zkgo/zkgo/session"
)

var errStopped = errors.New("stopped")

// A seed that is stopped at any step leaves either no state that a server would accept as
// its own, or the complete state.
func TestSeedThatIsInterrupted(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]func(*testing.T) Config{"standalone": aloneConfig, "member": memberConfig} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upTo := func(k int) (cfg Config, steps []string, err error) {
				cfg = config(t)
				tr, table := elsewhere()
				_, err = Seed(cfg, tr, table, func(step string) error {
					if steps = append(steps, step); len(steps) == k {
						return errStopped
					}
					return nil
				})
				return cfg, steps, err
			}
			_, steps, err := upTo(0)
			if err != nil || len(steps) < 5 || steps[0] != "journal" {
				t.Fatalf("%v, %v", steps, err)
			}
			for k, step := range steps {
				cfg, _, err := upTo(k + 1)
				if !errors.Is(err, errStopped) {
					t.Fatal(step, err)
				}
				p, err := Survey(cfg)
				if k == 0 {
					if !errors.Is(err, datadir.ErrNoState) {
						t.Errorf("%s: not begun: %+v, %v", step, p, err)
					}
					tr, table := elsewhere()
					if _, err := Seed(cfg, tr, table, nil); err != nil {
						t.Errorf("once more: %v", err)
					}
					continue
				}
				if err != nil || p.Zxid != 0x5_0000_0007 || p.Sessions != 1 {
					t.Errorf("%s: begun and not finished: %+v, %v", step, p, err)
				}
			}
		})
	}
}

// A recovery that is stopped at any step leaves the old state or the new one.
func TestRecoveryThatIsInterrupted(t *testing.T) {
	t.Parallel()
	upTo := func(k int) (cfg Config, cluster string, steps []string, err error) {
		cfg = memberConfig(t)
		tr, table := elsewhere()
		seeded, err := Seed(cfg, tr, table, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Recover(cfg, 0, func(step string) error {
			if steps = append(steps, step); len(steps) == k {
				return errStopped
			}
			return nil
		})
		return cfg, seeded.Cluster, steps, err
	}
	_, _, steps, err := upTo(0)
	if err != nil || len(steps) < 8 {
		t.Fatalf("%v, %v", steps, err)
	}
	decided := slices.Index(steps, "journal") + 1
	for k, step := range steps {
		cfg, cluster, _, err := upTo(k + 1)
		if !errors.Is(err, errStopped) {
			t.Fatal(step, err)
		}
		p, err := Survey(cfg)
		switch {
		case err != nil:
			t.Error(step, err)
		case k < decided && (p.Cluster != cluster || p.Zxid != 0x5_0000_0007 || p.Sessions != 1):
			t.Errorf("%s: not begun and not what it was: %+v", step, p)
		case k >= decided && (p.Cluster == cluster || p.Zxid>>32 != 5+EpochGap || p.Sessions != 0):
			t.Errorf("%s: begun and not what it is to be: %+v", step, p)
		}
	}
}

// A restored state has the epoch that is asked for, and no session. Its session ids start
// above the ids in the state.
func TestRestoreStartsANewHistory(t *testing.T) {
	t.Parallel()
	cfg := aloneConfig(t)
	tr, table := elsewhere()
	const epoch = 7000
	done, err := Restore(cfg, tr, table, epoch)
	if err != nil || done.Zxid>>32 != epoch {
		t.Fatalf("%+v, %v", done, err)
	}
	restored, sessions, p, err := Load(cfg)
	if err != nil || p.Cluster != done.Cluster || sessions.Len() != 0 {
		t.Fatalf("%+v with %d sessions, %v", p, sessions.Len(), err)
	}
	if restored.Get("/kept") == nil || restored.Get("/gone") != nil {
		t.Error("the tree is not what it was without the ephemeral znodes")
	}
	hourAgo := session.Counter(time.Now().Add(-time.Hour).UnixMilli() << 16)
	if next := sessions.Create(1, 4000, [16]byte{}); session.Counter(next.ID) < hourAgo {
		t.Errorf("session %#x could be one of before", next.ID)
	}
}

// Each refusal states the reason, and changes nothing.
func TestRefusals(t *testing.T) {
	t.Parallel()
	full := aloneConfig(t)
	tr, table := elsewhere()
	if _, err := Seed(full, tr, table, nil); err != nil {
		t.Fatal(err)
	}
	before, err := Survey(full)
	if err != nil {
		t.Fatal(err)
	}
	memory := full
	memory.Memory = true
	unlisted := memberConfig(t)
	unlisted.Server.ID = 9
	seed := func(cfg Config) error {
		tr, table := elsewhere()
		_, err := Seed(cfg, tr, table, nil)
		return err
	}
	recoverFrom := func(cfg Config, epoch uint32) error {
		_, err := Recover(cfg, epoch, nil)
		return err
	}
	survey := func(cfg Config) error {
		_, err := Survey(cfg)
		return err
	}
	for want, err := range map[string]error{
		"only a server with a disk can be seeded": seed(memory),
		"never replaced":                        seed(full),
		"server 9 is not on the list":           seed(unlisted),
		"only a server with a disk can be read": survey(memory),
		"no state of zkgo":                      survey(memberConfig(t)),
		"there is none above":                   recoverFrom(full, 1<<31),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if after, err := Survey(full); err != nil || after.Cluster != before.Cluster || after.Zxid != before.Zxid {
		t.Errorf("%+v, %v; was %+v", after, err, before)
	}
}
