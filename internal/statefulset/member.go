package statefulset

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/zkgo/zkgo/client"
)

// Member keeps a server's membership in step with its StatefulSet.
type Member struct {
	Pod
	Sizes   func(ctx context.Context, set string) (Size, error) // API.Size
	Port    string                                              // for clients, of the other servers
	Connect func() ([]client.Option, error)                     // with the credentials, which may change
	Log     *slog.Logger

	pause time.Duration // between two attempts; default a second
	said  string        // the newest failure in the log
}

// attempt limits one attempt. The ensemble gives up a reconfig after 30 s.
const attempt = 40 * time.Second

// Voters reads the number of voters until the API answers, because a server that starts with a
// wrong list could form an ensemble.
func (m *Member) Voters(ctx context.Context) (Size, error) {
	var size Size
	err := m.insist(ctx, "read the number of servers", func(ctx context.Context) (err error) {
		size, err = m.Sizes(ctx, m.Pod.Voters)
		if err == nil && size.Gone {
			err = fmt.Errorf("the StatefulSet %s does not exist", m.Pod.Voters)
		}
		return err
	})
	return size, err
}

// Join adds the server to the ensemble, unless it is a member already. It returns when it is,
// or when ctx ends. Servers that form an ensemble are members from the start.
func (m *Member) Join(ctx context.Context) error {
	return m.insist(ctx, "join the ensemble", func(ctx context.Context) error {
		own, err := m.Sizes(ctx, m.Set)
		if err != nil {
			return err
		}
		if !own.wants(m.Ordinal) {
			return errors.New("this server is scaled down")
		}
		return m.withEnsemble(ctx, func(ctx context.Context, c *client.Client, now client.Config) error {
			if line := lineOf(now, m.ID()); line != "" && sameRole(line, m.Observer()) {
				return nil
			}
			_, err := c.Reconfig(ctx, client.Reconfiguration{Joining: []string{m.Line()}, Version: client.AnyVersion})
			if err == nil {
				m.Log.Info("this server has joined the ensemble", "line", m.Line())
			}
			return err
		})
	})
}

// Leave removes the server from the ensemble if it is scaled away, and returns immediately if it
// only stops. If ctx ends first, the server is still a member.
func (m *Member) Leave(ctx context.Context) error {
	scaled, err := m.scaledAway(ctx)
	if err != nil || !scaled {
		return err
	}
	m.Log.Info("this server is scaled down: it leaves the ensemble before it stops")
	return m.insist(ctx, "leave the ensemble", func(ctx context.Context) error {
		if scaled, err := m.scaledAway(ctx); err != nil || !scaled {
			return err // e.g. scaled up again
		}
		return m.withEnsemble(ctx, func(ctx context.Context, c *client.Client, now client.Config) error {
			return m.remove(ctx, c, now, m.ID())
		})
	})
}

// scaledAway reports whether this server should no longer exist. It doesn't ask again if the API
// refuses, so that the pods of a deleted release end immediately.
func (m *Member) scaledAway(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, attempt/2)
	defer cancel()
	var own, voters Size
	var refused error
	err := m.insist(ctx, "read the number of servers", func(ctx context.Context) (err error) {
		if own, err = m.Sizes(ctx, m.Set); err == nil {
			voters, err = m.Sizes(ctx, m.Pod.Voters)
		}
		if errors.Is(err, errRefused) {
			refused, err = err, nil
		}
		return err
	})
	if refused != nil {
		return false, refused
	}
	stopped := own.Gone || voters.Gone || voters.Replicas == 0
	return err == nil && !stopped && !own.wants(m.Ordinal), err
}

// Sweep removes voters that have no pod any more, e.g. because a machine broke while the pod was
// scaled away. The server with the first ordinal calls it repeatedly.
func (m *Member) Sweep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	voters, err := m.Sizes(ctx, m.Pod.Voters)
	if err != nil || m.Observer() || m.Ordinal != voters.First || voters.Gone || voters.Replicas == 0 {
		return err
	}
	return m.withEnsemble(ctx, func(ctx context.Context, c *client.Client, now client.Config) error {
		for id := m.VoterID + voters.end(); id <= maxID; id++ {
			line := lineOf(now, id)
			if _, host, _ := strings.Cut(line, "="); !strings.HasPrefix(host, m.host(m.Pod.Voters, id-m.VoterID)+":") {
				continue // also the servers of another StatefulSet
			}
			m.Log.Warn("the pod of this server no longer exists: it is removed from the ensemble", "server", id)
			if err := m.remove(ctx, c, now, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// maxID is the highest id of a server.
const maxID = 255

// remove removes a server from the ensemble if it is a member.
func (m *Member) remove(ctx context.Context, c *client.Client, now client.Config, id int) error {
	if lineOf(now, id) == "" {
		return nil
	}
	_, err := c.Reconfig(ctx, client.Reconfiguration{Leaving: []string{strconv.Itoa(id)}, Version: client.AnyVersion})
	if err == nil {
		m.Log.Info("the server has left the ensemble", "server", id)
	}
	return err
}

// withEnsemble connects to another voter, and reads the list of servers. The only voter of an
// ensemble connects to itself.
func (m *Member) withEnsemble(ctx context.Context, do func(context.Context, *client.Client, client.Config) error) error {
	voters, err := m.Sizes(ctx, m.Pod.Voters)
	if err != nil {
		return err
	}
	servers := m.others(voters, m.Port)
	if len(servers) == 0 {
		servers = []string{m.host(m.Pod.Voters, m.Ordinal) + ":" + m.Port}
	}
	options, err := m.Connect()
	if err != nil {
		return err
	}
	c, err := client.Connect(ctx, strings.Join(servers, ","), options...)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // the session ends with the process anyway
	now, err := c.Config(ctx)
	if err != nil {
		return err
	}
	return do(ctx, c, now)
}

// slower bounds the pause, as a multiple of the first one. Each refused reconfig is an entry in
// the log of the ensemble.
const slower = 5

// insist repeats do until it succeeds or ctx ends. It logs each new reason once.
func (m *Member) insist(ctx context.Context, what string, do func(ctx context.Context) error) error {
	pause := m.pause
	if pause == 0 {
		pause = time.Second
	}
	wait := pause
	for {
		limited, cancel := context.WithTimeout(ctx, attempt)
		err := do(limited)
		cancel()
		if err == nil {
			return nil
		}
		if text := what + err.Error(); text != m.said && ctx.Err() == nil {
			m.said = text
			m.Log.Warn("this server cannot "+what+" yet", "reason", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("this server could not %s: %w", what, err)
		case <-time.After(wait):
			wait = min(2*wait, slower*pause)
		}
	}
}

// lineOf returns a server's line in the configuration, or "".
func lineOf(c client.Config, id int) string {
	prefix := fmt.Sprintf("server.%d=", id)
	for line := range strings.Lines(c.Text) {
		if strings.HasPrefix(line, prefix) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// sameRole reports whether a line has the role that a server should have.
func sameRole(line string, observer bool) bool {
	peer, _, _ := strings.Cut(line, ";")
	return strings.HasSuffix(peer, ":observer") == observer
}
