package netns

import (
	"encoding/binary"
	"net/netip"
)

// TCP flags.
const (
	flagFin = 1 << iota
	flagSyn
	flagRst
	flagPsh
	flagAck
)

const (
	ipHeader  = 20 // without options
	tcpHeader = 20
	protoTCP  = 6
)

// packet is an IPv4 packet, and the TCP segment in it if there is one.
type packet struct {
	raw      []byte
	src, dst netip.AddrPort // port 0 unless TCP
	tcp      bool
	flags    byte
	seq, ack uint32
	payload  []byte
}

// parse reads an IPv4 packet. It returns false for anything else.
func parse(raw []byte) (packet, bool) {
	if len(raw) < ipHeader || raw[0]>>4 != 4 {
		return packet{}, false
	}
	header := int(raw[0]&15) * 4
	if header < ipHeader || len(raw) < header {
		return packet{}, false
	}
	p := packet{raw: raw}
	src, dst := netip.AddrFrom4([4]byte(raw[12:16])), netip.AddrFrom4([4]byte(raw[16:20]))
	segment := raw[header:]
	if raw[9] != protoTCP || len(segment) < tcpHeader {
		p.src, p.dst = netip.AddrPortFrom(src, 0), netip.AddrPortFrom(dst, 0)
		return p, true
	}
	p.tcp = true
	p.src = netip.AddrPortFrom(src, binary.BigEndian.Uint16(segment))
	p.dst = netip.AddrPortFrom(dst, binary.BigEndian.Uint16(segment[2:]))
	p.seq, p.ack = binary.BigEndian.Uint32(segment[4:]), binary.BigEndian.Uint32(segment[8:])
	p.flags = segment[13]
	if offset := int(segment[12]>>4) * 4; offset >= tcpHeader && offset <= len(segment) {
		p.payload = segment[offset:]
	}
	return p, true
}

// reset returns the packet with which dst refuses p's connection to src. Its
// sequence number is the one that the sender of p expects.
func (p *packet) reset() []byte {
	b := make([]byte, ipHeader+tcpHeader)
	b[0] = 4<<4 | ipHeader/4
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	b[8], b[9] = 64, protoTCP
	from, to := p.dst.Addr().As4(), p.src.Addr().As4()
	copy(b[12:], from[:])
	copy(b[16:], to[:])
	binary.BigEndian.PutUint16(b[10:], ^fold(sum(0, b[:ipHeader])))
	s := b[ipHeader:]
	binary.BigEndian.PutUint16(s, p.dst.Port())
	binary.BigEndian.PutUint16(s[2:], p.src.Port())
	binary.BigEndian.PutUint32(s[4:], p.ack)
	s[12], s[13] = tcpHeader/4<<4, flagRst
	pseudo := sum(0, b[12:20]) + protoTCP + tcpHeader
	binary.BigEndian.PutUint16(s[16:], ^fold(sum(pseudo, s)))
	return b
}

// sum adds 16-bit words for the Internet checksum; fold completes it.
func sum(n uint32, b []byte) uint32 {
	for i := 0; i+1 < len(b); i += 2 {
		n += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	return n
}

func fold(n uint32) uint16 {
	for n > 0xffff {
		n = n>>16 + n&0xffff
	}
	return uint16(n)
}
