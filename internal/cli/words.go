package cli

import (
	"context"
	"errors"
	"strings"
	"unicode/utf16"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/cli/diagnose"
)

// sentence returns zkCli.sh's message for an error.
func sentence(err error) string {
	if exit := (*Exit)(nil); errors.As(err, &exit) {
		return exit.Message
	}
	e := (*client.Error)(nil)
	if !errors.As(err, &e) {
		switch {
		case errors.Is(err, client.ErrAuthFailed):
			return "KeeperErrorCode = AuthFailed: " + err.Error()
		case errors.Is(err, context.Canceled):
			return "Interrupted"
		}
		return err.Error()
	}
	unknown := ""
	if e.Unknown {
		unknown = " (the operation may or may not have been applied)"
	}
	switch {
	case errors.Is(err, diagnose.ErrNoConnection):
		return keeperCode("ConnectionLoss", e.Path) + unknown + ": " + noConnectionWords(err)
	case e.Code == 0 && errors.Is(err, context.Canceled):
		return "Interrupted" + unknown
	case e.Code == 0:
		return err.Error()
	case e.Code == client.ErrAuthFailed && e.Err != nil:
		return refusal(e) + ": " + e.Err.Error()
	case e.Code == client.ErrBadArguments && e.Err != nil:
		if wrong := wrongPath(err); wrong != nil {
			return wrong.Error()
		}
		text := "Arguments are not valid : " + e.Path + ": " + e.Err.Error()
		if errors.Is(err, client.ErrRequestTooLarge) {
			text += "; increase jute.maxbuffer of the servers, and of this program with -client-configuration"
		}
		return text
	}
	return refusal(e) + unknown
}

// wrongPath returns ZooKeeper's error for a path that the client didn't send because it is
// invalid, or nil for another error.
func wrongPath(err error) error {
	e := (*client.Error)(nil)
	if !errors.As(err, &e) || e.Code != client.ErrBadArguments || e.Err == nil {
		return nil
	}
	return checkPath(e.Path)
}

// noConnectionWords returns the message of the noConnection in an error.
func noConnectionWords(err error) string {
	if e := (*diagnose.NoConnection)(nil); errors.As(err, &e) {
		return e.Error()
	}
	return diagnose.ErrNoConnection.Error()
}

// opReconfig is the operation's name in an error.
const opReconfig = "reconfig"

// refusal returns the message for a server's error.
func refusal(e *client.Error) string {
	path := e.Path
	if path == "" && e.Op != opReconfig {
		path = "null" // Java's word for no path; reconfig has an empty one
	}
	switch e.Code {
	case client.ErrNoNode:
		return "Node does not exist: " + path
	case client.ErrNoChildrenForEphemerals:
		return "Ephemerals cannot have children: " + path
	case client.ErrNodeExists:
		return "Node already exists: " + path
	case client.ErrNotEmpty:
		return "Node not empty: " + path
	case client.ErrNotReadOnly:
		return "Not a read-only call: " + path
	case client.ErrInvalidACL:
		return "Acl is not valid : " + path
	case client.ErrNoAuth:
		return "Insufficient permission : " + path
	case client.ErrBadArguments:
		return "Arguments are not valid : " + path
	case client.ErrBadVersion:
		return "version No is not valid : " + path
	case client.ErrQuotaExceeded:
		return "Quota has exceeded : " + path
	case client.ErrReconfigInProgress:
		return "Another reconfiguration is in progress -- concurrent reconfigs not supported (yet)"
	case client.ErrNewConfigNoQuorum:
		return "No quorum of new config is connected and up-to-date with the leader of last commmitted config" +
			" - try invoking reconfiguration after new servers are connected and synced"
	}
	text := keeperCode(codeName(e.Code), e.Path)
	switch {
	case e.Code == client.ErrReconfigDisabled:
		text += ": the servers need reconfigEnabled=true in zoo.cfg"
	case e.Code == client.ErrUnimplemented && strings.HasPrefix(e.Op, "create"):
		text += ": a time to live needs extendedTypesEnabled=true in the servers' zoo.cfg"
	}
	return text
}

// keeperCode returns the message of ZooKeeper's Java client for a code without a
// message in zkCli.sh.
func keeperCode(name, path string) string {
	if path != "" {
		path = " for " + path
	}
	return "KeeperErrorCode = " + name + path
}

// codeName returns KeeperException's name of a code.
func codeName(code client.Code) string {
	names := map[client.Code]string{
		client.ErrSystemError: "SystemError", client.ErrRuntimeInconsistency: "RuntimeInconsistency",
		client.ErrConnectionLoss: "ConnectionLoss", client.ErrMarshalling: "MarshallingError",
		client.ErrUnimplemented: "Unimplemented", client.ErrInvalidACL: "InvalidACL",
		client.ErrAuthFailed: "AuthFailed", client.ErrSessionExpired: "Session expired",
		client.ErrSessionMoved: "Session moved", client.ErrEphemeralOnLocalSession: "Ephemeral node on local session",
		client.ErrNoWatcher: "No such watcher", client.ErrReconfigDisabled: "Reconfig is disabled",
		client.ErrThrottledOp: "Op throttled due to high load",
	}
	if name := names[code]; name != "" {
		return name
	}
	return code.Error()
}

// checkPath returns ZooKeeper's error for an invalid path, or nil.
func checkPath(path string) error {
	switch {
	case path == "":
		return misuse("Path length must be > 0")
	case path[0] != '/':
		return misuse("Path must start with / character")
	case path == "/":
		return nil
	case strings.HasSuffix(path, "/"):
		return misuse("Path must not end with / character")
	}
	// Positions are in UTF-16 units, as in Java.
	chars := utf16.Encode([]rune(path))
	for i := 1; i < len(chars); i++ {
		reason := ""
		ends := i+1 == len(chars) || chars[i+1] == '/'
		switch c := chars[i]; {
		case c == 0:
			reason = "null character not allowed"
		case c == '/' && chars[i-1] == '/':
			reason = "empty node name specified"
		case c == '.' && ends && (chars[i-1] == '/' || chars[i-1] == '.' && chars[i-2] == '/'):
			reason = "relative paths not allowed"
		case c <= 0x1f, c >= 0x7f && c <= 0x9f, c >= 0xd800 && c <= 0xf8ff, c >= 0xfff0:
			reason = "invalid character"
		}
		if reason != "" {
			return misuse("Invalid path string \"%s\" caused by %s @%d", path, reason, i)
		}
	}
	return nil
}
