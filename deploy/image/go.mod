module github.com/admission-dispatcher/dispatcher/deploy/image

go 1.26.0

require (
	github.com/admission-dispatcher/dispatcher v0.0.0-00010101000000-000000000000
	github.com/google/go-containerregistry v0.22.1
)

require (
	github.com/docker/cli v29.7.2+incompatible // indirect
	github.com/docker/docker-credential-helpers v0.9.3 // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/opencontainers/image-spec v1.1.1 // indirect
	github.com/sirupsen/logrus v1.9.4 // indirect
	golang.org/x/sync v0.23.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	gotest.tools/v3 v3.5.2 // indirect
)

replace github.com/admission-dispatcher/dispatcher => ../..
