package takeover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/zkgo/zkgo/internal/mirrored"
	"github.com/zkgo/zkgo/internal/smallfile"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm"
)

// Memory describes the ensemble that a server follows. The server stores it for a restart at a time
// when no server of the ensemble answers, because it must know which client addresses have to be
// closed. It has no secrets.
type Memory struct {
	From    string          `json:"from"`              // as the operator has named it
	Clients string          `json:"clients,omitempty"` // the same
	Source  mirrored.Source `json:"source"`            // the kind of its servers
}

// memoryFile returns the path of the file with the Memory.
func memoryFile(dataDir string) string { return filepath.Join(dataDir, "mirror.json") }

// ErrNoEnsemble says that the operator has named no ensemble, and neither did an earlier start.
var ErrNoEnsemble = errors.New("no ensemble: name its servers with --from host:quorumport,…, or its zoo.cfg")

// recall completes the operator's options from the file in dataDir. An ensemble with
// another name has nothing to do with the one before.
func recall(dataDir, from, clients string) (m Memory, err error) {
	if info, err := os.Stat(from); err == nil && !info.IsDir() {
		if from, err = filepath.Abs(from); err != nil {
			return m, err
		}
	}
	b, err := smallfile.Read(memoryFile(dataDir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return m, err
	default:
		if err := json.Unmarshal(b, &m); err != nil {
			return m, fmt.Errorf("%s is damaged (%w): remove it, and name the ensemble with --from and --clients", memoryFile(dataDir), err)
		}
	}
	switch {
	case from == "" && m.From == "":
		return m, ErrNoEnsemble
	case from != "" && from != m.From:
		m = Memory{From: from}
	}
	if clients != "" {
		m.Clients = clients
	}
	return m, nil
}

// remember keeps the Memory up to date until ctx ends. We know the kind of the ensemble's servers
// from the connection, which only one of our servers has. It tells the others.
func (m *Mirror) remember(ctx context.Context, dataDir string, n *raftfsm.Node) {
	memory := m.cfg.Memory
	m.save(dataDir, &memory)
	for {
		changed := n.Mirroring().Changed()
		if _, mark, _ := n.Mirroring().State(); mark.InSync && mark.Source != memory.Source {
			memory.Source = mark.Source
			m.set(func() { m.source = mark.Source })
			m.save(dataDir, &memory)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (m *Mirror) save(dataDir string, memory *Memory) {
	b, err := json.Marshal(memory)
	if err == nil {
		err = vfs.ReplaceFile(vfs.OS{}, memoryFile(dataDir), append(b, '\n'), 0o600)
	}
	if err != nil {
		m.cfg.Logger.Warn("cannot store --from and --clients: repeat them at the next start", "err", err)
	}
}
