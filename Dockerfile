# The image of Penstock: static binaries, the certificate authorities that they trust, and nothing else: no shell, no
# package to patch. The build context is a folder with these files; e2e/src/cluster/images.rs makes one.
FROM scratch
COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY penstock penstock-operator penstock-executor /
USER 65532:65532
ENTRYPOINT ["/penstock"]
