package queue

import "encoding/binary"

// The format of a znode's data.
const (
	formVersion = 0x00010001
	opItem      = 1
	opEnd       = 2
)

func encode(values [][]byte) []byte {
	data := binary.BigEndian.AppendUint32(nil, formVersion)
	for _, v := range values {
		data = append(data, opItem)
		data = binary.BigEndian.AppendUint32(data, uint32(len(v))) //nolint:gosec // a znode's data is shorter
		data = append(data, v...)
	}
	return append(data, opEnd)
}

// decode returns nil if data is in another format.
func decode(data []byte) [][]byte {
	if len(data) < 4 || binary.BigEndian.Uint32(data) != formVersion {
		return nil
	}
	values := [][]byte{}
	for data = data[4:]; len(data) > 0; {
		if data[0] == opEnd {
			return values
		}
		if data[0] != opItem || len(data) < 5 {
			break
		}
		n := uint64(binary.BigEndian.Uint32(data[1:]))
		if data = data[5:]; n > uint64(len(data)) {
			break
		}
		values = append(values, data[:n:n])
		data = data[n:]
	}
	return nil
}
