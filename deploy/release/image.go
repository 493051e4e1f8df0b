package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// imageUser is the user of ZooKeeper's official image.
const imageUser = 1000

// image returns the image for one processor: the files and the configuration of
// deploy/container/Dockerfile, but without Docker.
func (r *release) image(goarch, bin string) (v1.Image, error) {
	root, err := r.rootLayer()
	if err != nil {
		return nil, err
	}
	program, err := r.programLayer(bin)
	if err != nil {
		return nil, err
	}
	return r.assemble(&v1.ConfigFile{
		Created: v1.Time{Time: r.at}, OS: "linux", Architecture: goarch,
		Config: v1.Config{
			User: "1000:1000", Entrypoint: []string{"/zkgo"}, Cmd: []string{"container"},
			Env:          []string{"PATH=/bin", "ZOO_CONF_DIR=/conf", "ZOO_DATA_DIR=/data", "ZOO_DATA_LOG_DIR=/datalog"},
			Volumes:      map[string]struct{}{"/data": {}, "/datalog": {}, "/logs": {}},
			ExposedPorts: map[string]struct{}{"2181": {}, "2888": {}, "3888": {}, "8080": {}},
			StopSignal:   "SIGTERM",
			Healthcheck: &v1.HealthConfig{Test: []string{"CMD", "/bin/zkServer.sh", "status"},
				Interval: 10 * time.Second, Timeout: 6 * time.Second, StartPeriod: 30 * time.Second},
			Labels: r.labels(),
		},
	}, mutate.Addendum{Layer: root, History: r.history("directories, links, authorities")}, mutate.Addendum{Layer: program, History: r.history("zkgo")})
}

// labels returns the annotations that registries and tools show.
func (r *release) labels() map[string]string {
	const prefix = "org.opencontainers.image."
	return map[string]string{
		prefix + "title": "zkgo", prefix + "description": "ZooKeeper-compatible coordination server", prefix + "licenses": "Apache-2.0",
		prefix + "source": repository, prefix + "url": repository, prefix + "documentation": repository + "/tree/" + r.ref() + "/docs",
		prefix + "version": r.version, prefix + "revision": r.revision, prefix + "created": r.at.Format(time.RFC3339),
	}
}

func (r *release) history(comment string) v1.History {
	return v1.History{Created: v1.Time{Time: r.at}, CreatedBy: "deploy/release", Comment: comment}
}

// assemble returns an OCI image.
func (r *release) assemble(config *v1.ConfigFile, layers ...mutate.Addendum) (v1.Image, error) {
	config.RootFS.Type = "layers"
	img, err := mutate.ConfigFile(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), config)
	if err != nil {
		return nil, err
	}
	return mutate.Append(img, layers...)
}

// rootLayer has what every processor's image has: directories, links, authorities.
func (r *release) rootLayer() (v1.Layer, error) {
	var certs bytes.Buffer
	for root := range bundle.Roots() {
		// A file can't express the date or the names that some authorities are limited to.
		if root.Constraint == nil {
			if err := pem.Encode(&certs, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
				return nil, err
			}
		}
	}
	return r.layer(func(t *tar.Writer) error {
		for _, d := range []struct {
			name  string
			mode  int64
			owner int
		}{
			{"bin", 0o755, 0},
			// The directories of a volume get the owner that they have in the image.
			{"conf", 0o755, imageUser}, {"data", 0o755, imageUser}, {"datalog", 0o755, imageUser},
			{"etc", 0o755, 0}, {"etc/ssl", 0o755, 0}, {"etc/ssl/certs", 0o755, 0},
			{"logs", 0o755, imageUser}, {"tmp", 0o1777, 0},
		} {
			h := &tar.Header{Typeflag: tar.TypeDir, Name: d.name + "/", Mode: d.mode, Uid: d.owner, Gid: d.owner, ModTime: r.at}
			if err := t.WriteHeader(h); err != nil {
				return err
			}
		}
		for _, name := range []string{"zkCli.sh", "zkServer.sh", "zkgo"} {
			if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + name, Linkname: "/zkgo", Mode: 0o777, ModTime: r.at}); err != nil {
				return err
			}
		}
		const name = "etc/ssl/certs/ca-certificates.crt"
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(certs.Len()), Mode: 0o644, ModTime: r.at}); err != nil {
			return err
		}
		_, err := t.Write(certs.Bytes())
		return err
	})
}

func (r *release) programLayer(bin string) (v1.Layer, error) {
	return r.layer(func(t *tar.Writer) error {
		info, err := os.Stat(bin)
		if err != nil {
			return err
		}
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "zkgo", Size: info.Size(), Mode: 0o755, ModTime: r.at}); err != nil {
			return err
		}
		return pour(t, bin)
	})
}

// layer returns a layer with the files that fill writes.
func (r *release) layer(fill func(*tar.Writer) error) (v1.Layer, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	t := tar.NewWriter(z)
	if err := errors.Join(fill(t), t.Close(), z.Close()); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }, tarball.WithMediaType(types.OCILayer))
}

// platformImage is the image of one processor and the program in it.
type platformImage struct {
	goarch, bin string
	image       v1.Image
}

// addImage builds the image for one processor.
func (r *release) addImage(goarch, bin string) error {
	img, err := r.image(goarch, bin)
	if err != nil {
		return err
	}
	r.images = append(r.images, platformImage{goarch, bin, img})
	return nil
}

// writeImages writes the images of all processors as one file in OCI's image layout, which
// docker load, podman load, skopeo and crane read. Each image has a list of its contents and a
// statement of its origin, attached like BuildKit's.
func (r *release) writeImages() error {
	if len(r.images) == 0 {
		return nil
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var attached []mutate.IndexAddendum
	for _, p := range r.images {
		digest, err := p.image.Digest()
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: p.image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: p.goarch}}})
		about, err := r.attestation(p, digest)
		if err != nil {
			return err
		}
		attached = append(attached, mutate.IndexAddendum{Add: about, Descriptor: v1.Descriptor{
			Platform:    &v1.Platform{OS: "unknown", Architecture: "unknown"},
			Annotations: map[string]string{"vnd.docker.reference.type": "attestation-manifest", "vnd.docker.reference.digest": digest.String()},
		}})
	}
	index, _ = mutate.Annotations(mutate.AppendManifests(index, attached...), r.labels()).(v1.ImageIndex)
	dir := filepath.Join(r.work, "oci")
	to, err := layout.Write(dir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return err
	}
	names := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.version, "io.containerd.image.name": "docker.io/zkgo/zkgo:" + r.version})
	if err := to.AppendIndex(index, names); err != nil {
		return err
	}
	return r.tarDirectory(dir, filepath.Join(r.out, "zkgo-"+r.version+"-image.tar"))
}

// tarDirectory writes a directory as a tar file that depends on nothing but its contents.
func (r *release) tarDirectory(dir, to string) (err error) {
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	t := tar.NewWriter(f)
	files, err := tree(dir)
	if err != nil {
		return err
	}
	for _, e := range files {
		if err := r.add(t, e, e.name); err != nil {
			return err
		}
	}
	return t.Close()
}
