package rpc

import (
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// Raft's messages have the format of raft.NetworkTransport. A stream is
//
//	(type:1 request snapshot?)*      from the server that dialled
//	(error response)*                from the other server
//
// in msgpack, with records as maps from field names to values.

// The message types.
const (
	AppendEntries byte = iota
	RequestVote
	InstallSnapshot
	TimeoutNow
	RequestPreVote
)

const (
	// maxEntries limits the entries of one message to the maximum that Raft can be
	// configured to send.
	maxEntries = 1024
	// maxIDField bounds the fields that name a server.
	maxIDField = 64
	// maxAddrField bounds an address in a configuration.
	maxAddrField = 512
	// maxServers bounds the servers of a configuration.
	maxServers = 1024
	// maxConfiguration bounds an encoded configuration.
	maxConfiguration = maxServers * (maxIDField + maxAddrField + 64)
	// maxExtensions limits the data that a log store adds to an entry, i.e. a checksum.
	maxExtensions = 64
	// maxTimeField bounds an encoded time.
	maxTimeField = 32
)

// Decode reads the request that follows the type byte. It checks only the lengths of the
// contents.
func (d *Reader) Decode(kind byte, maxEntry int) (any, error) {
	var command any
	switch kind {
	case AppendEntries:
		command = d.appendEntries(maxEntry)
	case RequestVote:
		command = d.requestVote()
	case InstallSnapshot:
		command = d.installSnapshot()
	case TimeoutNow:
		command = d.timeoutNow()
	case RequestPreVote:
		command = d.requestPreVote()
	default:
		return nil, fmt.Errorf("unknown type %d", kind)
	}
	return command, d.err
}

// record reads a map; field reads the value of a field, and returns false if it doesn't
// know the field.
func (d *Reader) record(field func(name string) bool) {
	for n := d.mapLen(); n > 0 && d.err == nil; n-- {
		name := d.key()
		if d.err != nil {
			return
		}
		if !field(name) {
			d.skip()
		}
		if d.err != nil {
			d.err = fmt.Errorf("field %q: %w", name, d.err)
		}
	}
}

func (d *Reader) header(h *raft.RPCHeader, name string) bool {
	switch name {
	case "ProtocolVersion":
		v := d.uint()
		h.ProtocolVersion = raft.ProtocolVersion(min(v, 1<<16))
	case "ID":
		h.ID = d.bytes(maxIDField)
	case "Addr":
		h.Addr = d.bytes(maxIDField)
	default:
		return false
	}
	return true
}

func (d *Reader) appendEntries(maxEntry int) *raft.AppendEntriesRequest {
	a := new(raft.AppendEntriesRequest)
	d.record(func(name string) bool {
		switch name {
		case "Term":
			a.Term = d.uint()
		case "Leader":
			a.Leader = d.bytes(maxIDField)
		case "PrevLogEntry":
			a.PrevLogEntry = d.uint()
		case "PrevLogTerm":
			a.PrevLogTerm = d.uint()
		case "LeaderCommitIndex":
			a.LeaderCommitIndex = d.uint()
		case "Entries":
			a.Entries = nil
			for n := d.arrayLen(maxEntries); n > 0 && d.err == nil; n-- {
				a.Entries = append(a.Entries, d.entry(maxEntry))
			}
		default:
			return d.header(&a.RPCHeader, name)
		}
		return true
	})
	return a
}

// entry reads a log entry; a nil entry is an error.
func (d *Reader) entry(maxEntry int) *raft.Log {
	if next, err := d.r.Peek(1); err == nil && next[0] == 0xc0 {
		d.fail(fmt.Errorf("%w: no entry", errMsgpack))
		return nil
	}
	l := new(raft.Log)
	d.record(func(name string) bool {
		switch name {
		case "Index":
			l.Index = d.uint()
		case "Term":
			l.Term = d.uint()
		case "Type":
			l.Type = raft.LogType(min(d.uint(), 0xff))
		case "Data":
			l.Data = d.bytes(maxEntry)
		case "Extensions":
			l.Extensions = d.bytes(maxExtensions)
		case "AppendedAt":
			d.time(&l.AppendedAt)
		default:
			return false
		}
		return true
	})
	return l
}

// time reads the output of time.Time's MarshalBinary.
func (d *Reader) time(t *time.Time) {
	b := d.bytes(maxTimeField)
	if d.err != nil || len(b) == 0 {
		return
	}
	if err := t.UnmarshalBinary(b); err != nil {
		d.fail(err)
	}
}

func (d *Reader) requestVote() *raft.RequestVoteRequest {
	q := new(raft.RequestVoteRequest)
	d.record(func(name string) bool {
		switch name {
		case "Term":
			q.Term = d.uint()
		case "Candidate":
			q.Candidate = d.bytes(maxIDField)
		case "LastLogIndex":
			q.LastLogIndex = d.uint()
		case "LastLogTerm":
			q.LastLogTerm = d.uint()
		case "LeadershipTransfer":
			q.LeadershipTransfer = d.bool()
		default:
			return d.header(&q.RPCHeader, name)
		}
		return true
	})
	return q
}

func (d *Reader) requestPreVote() *raft.RequestPreVoteRequest {
	q := new(raft.RequestPreVoteRequest)
	d.record(func(name string) bool {
		switch name {
		case "Term":
			q.Term = d.uint()
		case "LastLogIndex":
			q.LastLogIndex = d.uint()
		case "LastLogTerm":
			q.LastLogTerm = d.uint()
		default:
			return d.header(&q.RPCHeader, name)
		}
		return true
	})
	return q
}

func (d *Reader) installSnapshot() *raft.InstallSnapshotRequest {
	q := new(raft.InstallSnapshotRequest)
	d.record(func(name string) bool {
		switch name {
		case "SnapshotVersion":
			v, negative := d.integer()
			if q.SnapshotVersion = raft.SnapshotVersion(min(v, 1<<16)); negative {
				q.SnapshotVersion = -1
			}
		case "Term":
			q.Term = d.uint()
		case "Leader":
			q.Leader = d.bytes(maxIDField)
		case "LastLogIndex":
			q.LastLogIndex = d.uint()
		case "LastLogTerm":
			q.LastLogTerm = d.uint()
		case "Peers":
			d.bytes(maxConfiguration) // for protocol versions that this server doesn't speak
		case "Configuration":
			q.Configuration = d.bytes(maxConfiguration)
		case "ConfigurationIndex":
			q.ConfigurationIndex = d.uint()
		case "Size":
			v, negative := d.integer()
			if q.Size = int64(v); negative || q.Size < 0 {
				q.Size = -1
			}
		default:
			return d.header(&q.RPCHeader, name)
		}
		return true
	})
	return q
}

func (d *Reader) timeoutNow() *raft.TimeoutNowRequest {
	q := new(raft.TimeoutNowRequest)
	d.record(func(name string) bool { return d.header(&q.RPCHeader, name) })
	return q
}

// configuration reads Raft's configuration. It accepts only known fields, so that Raft's
// own decoder accepts the same input.
func (d *Reader) configuration() raft.Configuration {
	var conf raft.Configuration
	d.record(func(name string) bool {
		if name != "Servers" {
			d.fail(fmt.Errorf("%w: unknown", errMsgpack))
			return true
		}
		conf.Servers = nil
		for n := d.arrayLen(maxServers); n > 0 && d.err == nil; n-- {
			conf.Servers = append(conf.Servers, d.server())
		}
		return true
	})
	return conf
}

func (d *Reader) server() raft.Server {
	var s raft.Server
	d.record(func(name string) bool {
		switch name {
		case "Suffrage":
			s.Suffrage = raft.ServerSuffrage(min(d.uint(), 0xff))
		case "ID":
			s.ID = raft.ServerID(d.text(maxIDField))
		case "Address":
			s.Address = raft.ServerAddress(d.text(maxAddrField))
		default:
			d.fail(fmt.Errorf("%w: unknown", errMsgpack))
		}
		return true
	})
	return s
}

// AppendAnswer appends the answer to a request.
func AppendAnswer(b []byte, r raft.RPCResponse) []byte {
	text := ""
	if r.Error != nil {
		text = r.Error.Error()
	}
	b = appendText(b, text)
	switch v := r.Response.(type) {
	case *raft.AppendEntriesResponse:
		b = appendHeader(b, 4, &v.RPCHeader)
		b = appendUint(appendText(b, "Term"), v.Term)
		b = appendUint(appendText(b, "LastLog"), v.LastLog)
		b = appendBool(appendText(b, "Success"), v.Success)
		return appendBool(appendText(b, "NoRetryBackoff"), v.NoRetryBackoff)
	case *raft.RequestVoteResponse:
		b = appendHeader(b, 2, &v.RPCHeader)
		b = appendUint(appendText(b, "Term"), v.Term)
		return appendBool(appendText(b, "Granted"), v.Granted)
	case *raft.RequestPreVoteResponse:
		b = appendHeader(b, 2, &v.RPCHeader)
		b = appendUint(appendText(b, "Term"), v.Term)
		return appendBool(appendText(b, "Granted"), v.Granted)
	case *raft.InstallSnapshotResponse:
		b = appendHeader(b, 2, &v.RPCHeader)
		b = appendUint(appendText(b, "Term"), v.Term)
		return appendBool(appendText(b, "Success"), v.Success)
	case *raft.TimeoutNowResponse:
		return appendHeader(b, 0, &v.RPCHeader)
	}
	return append(b, 0xc0)
}

// appendHeader starts a record with the header fields and more other fields.
func appendHeader(b []byte, more int, h *raft.RPCHeader) []byte {
	b = appendMap(b, more+3)
	b = appendUint(appendText(b, "ProtocolVersion"), uint64(h.ProtocolVersion))
	b = appendRaw(appendText(b, "ID"), h.ID)
	return appendRaw(appendText(b, "Addr"), h.Addr)
}
