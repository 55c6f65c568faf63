# Serves exported models over HTTP: docs/server.md.
#   make docker-serve
#   docker run --rm -p 8501:8501 -v /models:/models:ro bert-tf-serve \
#     --model=/models/mrpc
FROM python:3.11-slim

COPY . /src
RUN pip install --no-cache-dir --disable-pip-version-check \
      -c /src/constraints.txt '/src[server,tensorflow-serving]' \
 && rm -r /src \
 && useradd --uid 1000 bert

ENV HOME=/tmp
USER 1000
VOLUME /models
EXPOSE 8501
# 200 as soon as the server runs; /readyz says whether the models are loaded.
HEALTHCHECK --start-period=60s CMD ["python", "-c", \
  "from urllib.request import urlopen; urlopen('http://127.0.0.1:8501/healthz')"]

# For all addresses, as the container's network is its own. What follows the
# image's name in `docker run` replaces the model.
ENTRYPOINT ["bert-tf", "run_server", "--host=0.0.0.0", "--port=8501"]
CMD ["--model=/models/model"]
