package server

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/zkgo/zkgo/internal/zoocfg"
)

// The membership in the configuration file. If reconfig is allowed, a server of an
// ensemble keeps its file in step with /zookeeper/config, as ZooKeeper does: the server
// lines move to a file of their own, named after the version,
//
//	zoo.cfg                      … dynamicConfigFile=/etc/zoo.cfg.dynamic.100000007
//	zoo.cfg.dynamic.100000007    server.1=…
//	zoo.cfg.bak                  the file before its server lines were moved out
//
// so that a restart begins with the last membership that this server saw. If the file
// can't be written, the server logs a warning and continues: the log has the
// membership.

// membersChanged wakes keepDynamic and clientPorts.follow. It doesn't block, so the
// goroutine that applies the log may call it.
func (s *Server) membersChanged() {
	for _, ch := range []chan struct{}{s.members, s.ports.moved} {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// keepDynamic starts a goroutine that writes the file at every change of the
// membership.
func (s *Server) keepDynamic() {
	z := s.cfg.zooCfg
	if z == nil || z.Path == "" || !s.cfg.Quorum.Reconfig || !s.cfg.distributed() {
		return
	}
	path, err := filepath.Abs(z.Path)
	if err != nil {
		s.log.Warn("the membership will not be written into the configuration file", "file", z.Path, "err", err)
		return
	}
	s.spawn(func() {
		written := z.DynamicConfigFile
		for {
			select {
			case <-s.done:
				return
			case <-s.members:
			}
			text := s.node.Membership()
			if text == nil {
				continue
			}
			file, err := writeMembership(path, s.node.FileText(text), written, s.cfg.Quorum.ID)
			if err == nil && file != "" {
				err = s.node.FileWritten(text)
			}
			switch {
			case err != nil:
				s.log.Warn("the membership could not be written into the configuration file: the list there is out of date", "file", path, "err", err)
			case file != written:
				written = file
				s.log.Info("the membership was written", "file", file)
			}
		}
	})
}

// writeMembership writes the dynamic file of a membership and makes the static file
// name it, unless both are up to date.
func writeMembership(path string, text []byte, written string, self uint64) (string, error) {
	lines, version, ok := bytes.Cut(text, []byte("\nversion="))
	if !ok {
		return written, fmt.Errorf("the membership has no version: %q", text)
	}
	file := path + ".dynamic." + string(version)
	if file == written {
		if have, err := os.ReadFile(file); err == nil && bytes.Equal(bytes.TrimSpace(have), lines) {
			return file, nil
		}
	}
	if string(version) == "0" {
		return written, nil // before the first leader that allows reconfig
	}
	if written == "" {
		if err := zoocfg.Backup(path); err != nil {
			return written, err
		}
	}
	if err := zoocfg.WriteFile(file, lines); err != nil {
		return written, err
	}
	own := fmt.Sprintf("server.%d=", self)
	client := false // the dynamic file contains the client port
	for line := range strings.Lines(string(lines)) {
		client = client || strings.HasPrefix(line, own) && strings.Contains(line, ";")
	}
	return file, zoocfg.PointAt(path, file, client)
}
