package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/process"
)

func memberFaults() []fault {
	return []fault{
		{"churn", 3, churn},
		{"wipe", 3, wipe},
		{"wipe-leader", 3, wipeLeader},
	}
}

// configNode is the znode with the membership.
const configNode = "/zookeeper/config"

// churn removes a server from the ensemble, sometimes the leader, and adds it
// again.
func churn(s *scene) error {
	m := s.any()
	s.logf("server %d is removed from the ensemble", m.ID)
	if err := s.reconfigure(m, false); err != nil {
		return err
	}
	s.hold(500*time.Millisecond, 4*time.Second)
	s.logf("server %d is added to the ensemble", m.ID)
	if err := s.reconfigure(m, true); err != nil {
		return err
	}
	return s.AwaitHealthy()
}

// reconfigure asks the other servers in turn until the membership is as wanted.
func (s *scene) reconfigure(m *Member, member bool) error {
	var last error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		for _, o := range s.Others(m) {
			is, err := o.reconfigure(m, member)
			if err == nil && is == member {
				return nil
			}
			last = err
		}
	}
	return fmt.Errorf("server %d could not be made a member (%v): %w", m.ID, member, last)
}

// reconfigure asks one server to add or remove another member, if that is
// necessary, and returns whether the other is a member.
func (m *Member) reconfigure(other *Member, member bool) (is bool, err error) {
	c, err := m.session(10 * time.Second)
	if err != nil {
		return false, err
	}
	defer c.Close()
	defer c.Do(proto.OpCloseSession, nil) //nolint:errcheck // else it expires
	if err := c.Auth("digest", superUser); err != nil {
		return false, err
	}
	if is, err = listed(c, other); err != nil || is == member {
		return is, err
	}
	req := proto.ReconfigRequest{Joining: proto.NullString, Leaving: proto.NullString, NewMembers: proto.NullString, CurConfigID: -1}
	if member {
		req.Joining = fmt.Sprintf("server.%d=%s", other.ID, other.line())
	} else {
		req.Leaving = fmt.Sprint(other.ID)
	}
	if _, err := c.Do(proto.OpReconfig, &req); err != nil {
		return !member, err
	}
	return listed(c, other)
}

func listed(c *process.Client, m *Member) (bool, error) {
	if _, err := c.Do(proto.OpSync, &proto.SyncRequest{Path: configNode}); err != nil {
		return false, err
	}
	data, _, err := c.Get(configNode)
	return strings.Contains("\n"+string(data), fmt.Sprintf("\nserver.%d=", m.ID)), err
}

// wipe empties a server's disk. The server has forgotten its votes, so it should return
// under another Raft ID.
func wipe(s *scene) error { return s.wipeOne(s.any()) }

func wipeLeader(s *scene) error {
	leader, _, err := s.Leader()
	if err != nil {
		return err
	}
	return s.wipeOne(leader)
}

func (s *scene) wipeOne(m *Member) error {
	s.logf("kill -9 of server %d, and its disk is wiped", m.ID)
	m.Kill()
	return s.rejoin(m)
}

// rejoin starts a dead server on an empty disk, as an operator does to replace a damaged
// disk, and checks that the server gets a new Raft ID.
func (s *scene) rejoin(m *Member) error {
	before, err := m.raftID()
	if err != nil {
		return err
	}
	if err := m.wipe(); err != nil {
		return err
	}
	if err := s.revive(m); err != nil {
		return err
	}
	after, err := m.raftID()
	if err != nil {
		return err
	}
	if after == before || !strings.HasPrefix(after, fmt.Sprintf("%d.", m.ID)) {
		return fmt.Errorf("server %d was %s and is %s on another disk", m.ID, before, after)
	}
	// Until then we must not lose another disk: a majority of the votes would be gone.
	vote := fmt.Sprintf("give server %s a vote", after)
	if err := s.Await(vote, patience, func([]Status) bool { return s.logged(vote) }); err != nil {
		return err
	}
	s.logf("server %d was %s and is %s", m.ID, before, after)
	return nil
}

// raftID returns the server's Raft ID as stored on its disk.
func (m *Member) raftID() (string, error) {
	path, err := m.find("identity.json")
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var id struct {
		RaftID string `json:"raftId"`
	}
	return id.RaftID, json.Unmarshal(b, &id)
}

// find returns the only file of that name in the data directory.
func (m *Member) find(pattern string) (string, error) {
	all, err := m.findAll(pattern)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%d files %s in %s", len(all), pattern, m.Data())
	}
	if err != nil {
		return "", err
	}
	return all[0], nil
}

func (m *Member) findAll(pattern string) ([]string, error) {
	var all []string
	err := filepath.WalkDir(m.Data(), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the file was removed concurrently
		}
		if ok, _ := filepath.Match(pattern, filepath.Base(path)); err == nil && ok && !d.IsDir() {
			all = append(all, path)
		}
		return err
	})
	return all, err
}
